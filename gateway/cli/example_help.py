"""Examples in the help of commands."""

from collections.abc import Iterator, Mapping

import click


def add_examples(group: click.Group, program: str, examples: Mapping[str, str]) -> None:
    """Show an example at the end of the help of each command. ``examples`` has the rest of the command line by name.

    The name of a command of a group inside has the name of the group before it: ``plugin enable``.
    """
    for name, command in commands_of(group):
        if name in examples:
            command.epilog = f"Example:\n\n\b\n  {program} {examples[name]}".rstrip()


def commands_of(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with their names, also those of groups inside."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command
