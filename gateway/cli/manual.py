"""Man pages and completion files of ``gateway`` and ``gatewayctl``, generated from their commands.

``make docs`` writes them into ``etc/man`` and ``etc/completions``, so that packages are built without the dependencies.
"""

import inspect
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Final

import click

from gateway.cli.completion import SHELLS, completion_source
from gateway.cli.ctl.main import gatewayctl
from gateway.cli.main import gateway
from gateway.version import VERSION

PROGRAMS: Final = {"gateway": gateway, "gatewayctl": gatewayctl}

_SUMMARY: Final = {
    "gateway": "run and maintain a message broker for AMQP 0-9-1, MQTT and STOMP",
    "gatewayctl": "operate a running gateway",
}

_END: Final = {
    "gateway": """\
.SH FILES
.TP
.I /etc/gateway/gateway.toml
The settings of the service that the package installs.
.TP
.I /var/lib/gateway
Its store.
.SH EXIT STATUS
.TP
.B 0
Stopped on request.
.TP
.B 64
The command line is wrong.
.TP
.B 65
The configuration is wrong.
.TP
.B 69
The store is unavailable, or failed.
.TP
.B 70
The broker failed.
.SH SEE ALSO
.BR gatewayctl (1)
""",
    "gatewayctl": """\
.SH SEE ALSO
.BR gateway (1)
""",
}

#: Where each shell searches for a completion file of a program.
_COMPLETION_FILES: Final = {"bash": "bash/{program}", "zsh": "zsh/_{program}", "fish": "fish/{program}.fish"}

#: Click's mark of a paragraph that is not wrapped.
_AS_WRITTEN: Final = "\b"


def manual_page(program: str) -> str:
    """Return the page of section 1 of a program, in roff."""
    group = PROGRAMS[program]
    context = click.Context(group, info_name=program)
    lines = [
        f'.TH {program.upper()} 1 "" "gateway {VERSION}" "User Commands"',
        ".SH NAME",
        f"{program} \\- {_SUMMARY[program]}",
        ".SH SYNOPSIS",
        f".B {program}",
        "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]",
        ".SH DESCRIPTION",
        *_paragraphs(group.help or ""),
        ".SH OPTIONS",
        *_options(group, context),
        ".SH COMMANDS",
        *_commands(group, context),
    ]
    return "\n".join(lines) + "\n" + _END[program]


def _commands(group: click.Group, above: click.Context) -> Iterator[str]:
    """Yield the sections of all commands, those of a group after the group, without the options that all have."""
    shared = {name for option in above.find_root().command.params for name in option.opts}
    for name, command in group.commands.items():
        if command.hidden:
            continue
        context = click.Context(command, above, name)
        yield f'.SS "{_text(" ".join((context.command_path, *command.collect_usage_pieces(context))))}"'
        yield from _paragraphs(command.help or "")
        yield from _options(command, context, but=shared)
        yield from _paragraphs(command.epilog or "")
        if isinstance(command, click.Group):
            yield from _commands(command, context)


def _options(command: click.Command, context: click.Context, but: Set[str] = frozenset()) -> Iterator[str]:
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option) and but.isdisjoint(parameter.opts):
            yield ".TP"
            yield f".B {_text(record[0])}"
            yield _text(" ".join(record[1].split())) or "\\&"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; those that click does not wrap keep their lines."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        if lines[0].strip() == _AS_WRITTEN:
            yield from (".PP", ".nf", *map(_text, lines[1:]), ".fi")
        elif paragraph.strip():
            yield from (".PP", _text(" ".join(paragraph.split())))


def _text(text: str) -> str:
    """Escape a line for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def packaged_files() -> Iterator[tuple[str, str]]:
    """Yield the path below ``etc`` and the content of each generated file."""
    for program, group in PROGRAMS.items():
        yield f"man/{program}.1", manual_page(program)
        for shell in SHELLS:
            place = _COMPLETION_FILES[shell].format(program=program)
            yield f"completions/{place}", completion_source(group, program, shell)


def write_files(root: Path) -> None:
    """Write the files below ``etc`` of ``root``."""
    for place, content in packaged_files():
        path = root / "etc" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write_files(Path(__file__).parents[2])
