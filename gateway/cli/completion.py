"""Completion scripts for shells, of click: the shell calls the program for each word."""

from typing import Final

import click
from click.shell_completion import get_completion_class

SHELLS: Final = ("bash", "zsh", "fish")

#: How a shell loads the script, now and at each start.
_HINTS: Final = {
    "bash": 'eval "$({program} completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$({program} completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "{program} completion fish > ~/.config/fish/completions/{program}.fish",
}


def completion_script(group: click.Group, program: str, shell: str) -> str:
    """Return the script of a shell that completes the commands and options of a program, with how to load it."""
    return f"# {_HINTS[shell].format(program=program)}\n{completion_source(group, program, shell)}"


def completion_source(group: click.Group, program: str, shell: str) -> str:
    """Return the script as it is installed where the shell searches for it; zsh reads the first line."""
    kind = get_completion_class(shell)
    assert kind is not None, f"click does not know the shell {shell}"
    variable = f"_{program.upper().replace('-', '_')}_COMPLETE"
    return kind(group, {}, program, variable).source()
