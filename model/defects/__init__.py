"""Known wrong behaviour of brokers, one file a mechanism.

The lawful broker knows none of it. A defect is a transition, a wrong output or a window (`model.judging.known_defect`):
where nothing lawful explains what came, a defect may, and the failure is recorded under its name. It may say in which
versions it begins and ends (`model.promises.versions`): the target's version decides which are known of it, and reports
say where it is newer than all that were verified.

A habit (`habits.py`) is a way to go on like these, of brokers that are no RabbitMQ; it has no name in any report, and
excuses nobody.
"""
