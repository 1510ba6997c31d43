"""The commands of ``gateway`` and the verbs of ``gatewayctl``, from the definitions of their command lines."""

from collections.abc import Iterator, Mapping
from typing import Final

import click

from docs.tools.reference.table import NOTE, code, table
from gateway.cli import main as gateway_program
from gateway.cli.ctl import main as ctl_program
from gateway.cli.ctl.examples import EXAMPLES as CTL_EXAMPLES
from gateway.cli.ctl.unsupported import UNSUPPORTED
from gateway.cli.ctl.verb import shared_options
from gateway.cli.example_help import commands_of

_GATEWAY_HEAD: Final = f"""\
# Commands of `gateway`

They start the broker, and check and maintain its files on this machine; [operations.md](../operations.md) explains
their use. `gateway COMMAND --help` shows the same. {NOTE}
"""

_CTL_HEAD: Final = f"""\
# Verbs of `gatewayctl`

They operate a running broker over its HTTP API. [gatewayctl.md](../gatewayctl.md) lists them by subject and explains
profiles, output and exit codes. `gatewayctl help VERB` shows the same. {NOTE}
"""


def gateway_page() -> str:
    """Return the page of the commands of ``gateway``."""
    return "\n".join([_GATEWAY_HEAD, *_commands(gateway_program.gateway, "gateway", gateway_program.EXAMPLES)]) + "\n"


def ctl_page() -> str:
    """Return the page of the verbs of ``gatewayctl``."""
    lines = [_CTL_HEAD, "## Options of each verb\n", *_options(shared_options())]
    lines += _commands(ctl_program.gatewayctl, "gatewayctl", CTL_EXAMPLES)
    lines += ["\n## Verbs of RabbitMQ that do not exist here\n"]
    lines += table(("Verb", "Instead, or why"), ((code(name), reason) for name, reason in sorted(UNSUPPORTED.items())))
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, program: str, examples: Mapping[str, str]) -> Iterator[str]:
    for name, command in sorted(commands_of(group)):
        yield from _command(command, program, name, examples.get(name, ""))


def _command(command: click.Command, program: str, name: str, example: str) -> Iterator[str]:
    usage = command.collect_usage_pieces(click.Context(command))
    words = " ".join(piece for piece in usage if piece != "[OPTIONS]")
    yield f"\n## `{name}`\n"
    yield f"`{f'{program} {name} {words}'.rstrip()}`\n"
    yield from _paragraphs(command.help or "")
    shared = {option.name for option in shared_options()} if program == "gatewayctl" else set()
    own = [each for each in command.params if isinstance(each, click.Option) and each.name not in shared]
    yield from _options(own)
    if example:
        yield f"\nExample: `{program} {example}`"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the help; a block that click does not wrap stays as it is."""
    for paragraph in text.strip().split("\n\n"):
        if paragraph.startswith("\b"):
            yield "```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```\n"
        else:
            yield paragraph.replace("\n", " ").replace("<", "&lt;") + "\n"


def _options(options: list[click.Parameter] | list[click.Option]) -> Iterator[str]:
    rows = [
        (code(_names(option)), (option.help or "").replace("<", "&lt;"))
        for option in options
        if isinstance(option, click.Option) and not option.hidden
    ]
    if rows:
        yield from table(("Option", "Meaning"), rows)


def _names(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.make_metavar(click.Context(click.Command('')))}"
