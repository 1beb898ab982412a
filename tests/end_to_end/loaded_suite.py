"""What each run reads first, read: for the process that runs are forked off."""

from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.model.promises.registry import requirements

requirements()
all_scenarios()
