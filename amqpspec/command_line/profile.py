"""`amqpspec profile`: which choice a broker made where the text leaves one, and which extensions it has."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from amqpspec.command_line.exit_codes import CONFORMS, INCONCLUSIVE
from amqpspec.command_line.output_files import must_write, require_none_of, require_writable
from amqpspec.command_line.suite_errors import tell_errors
from amqpspec.command_line.targets import WIRE, target_under_test
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.profile.settings import measure_settings
from amqpspec.model.promises.dialect_names import base_of, choices_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.dialects.settled import with_settings
from amqpspec.model.promises.versions import RABBITMQ
from amqpspec.reports.profile_report import print_profile, profile_as_json, summary
from amqpspec.targets.brokers.dialect_file import dialect_file


def execute(options: argparse.Namespace, console: Console) -> int:
    if options.driver != WIRE:
        raise UsageError(f"--driver {options.driver}: what a broker chose is measured by {WIRE}")
    file = options.toml
    if file is not None:
        require_none_of(file, [Path(options.target)])
        require_writable(file)
    with target_under_test(options) as target:
        profile = measure(target)
        described = target.description
        own = dialect_named(described.dialect)
        if described.product == RABBITMQ and own.extensions:
            settings, errors = measure_settings(target, own)
            profile = replace(profile, settings=settings, errors=(*profile.errors, *errors))
    if file is not None:
        who = f"{described.product} {described.version}"
        if own.extensions:
            set_to = choices_of(own.name) | {
                each.choice.name: each.value.name for each in profile.settings if each.value is not None
            }
            told = choices_of(with_settings(own, set_to).name)
            title = f"{who}, which is known{', and how it is set' if told else ''}"
            text = dialect_file(base_of(own.name), (), told, title)
        else:
            title = f"{who}: what it has, and chose where the text leaves a choice (amqpspec profile)"
            text = dialect_file(profile.base, profile.held_to, profile.settled, title)
        must_write(file, text)
    if options.json:
        console.file.write(profile_as_json(profile, described))
    elif options.quiet:
        console.print(summary(profile))
    else:
        print_profile(console, profile, described)
    tell_errors(profile.errors, [], None if options.quiet or options.json else console)
    return INCONCLUSIVE if profile.errors else CONFORMS
