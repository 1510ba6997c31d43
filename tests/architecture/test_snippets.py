"""The code blocks of README and docs: each has a language and names commands, options and settings that exist.

`tests/interop/pages` runs those of README and the tutorials.
"""

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import click
import pytest
import yaml

from gateway.cli.ctl.main import find_command, gatewayctl
from gateway.cli.main import gateway
from gateway.config import load
from gateway.plugins.built_in import BUILT_IN_MODULES
from tests.interop.pages.blocks import PAGES, ROOT, Block, blocks

BLOCKS: Final = [block for page in PAGES for block in blocks(page)]

LANGUAGES: Final = {"sh", "console", "python", "toml", "json", "yaml", "sql", "js", "text", "output"}

#: TOML that is not the gateway's, by its first line.
OTHER_TOML: Final = ("# pyproject.toml", 'default_profile = "local"')

#: Verbs that a plugin of a page adds.
PLUGIN_VERBS: Final = {*BUILT_IN_MODULES, "customers"}

TARGETS: Final = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def of(*languages: str) -> list[object]:
    return [pytest.param(block, id=block.place) for block in BLOCKS if block.language in languages]


def test_each_block_has_a_known_language() -> None:
    assert [block.place for block in BLOCKS if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("block", of("python"))
def test_python_is_python(block: Block) -> None:
    assert compile(block.text, block.place, "exec")


@pytest.mark.parametrize("block", of("json"))
def test_json_is_json(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", of("yaml"))
def test_yaml_is_yaml(block: Block) -> None:
    assert yaml.safe_load(block.text)


@pytest.mark.parametrize("block", of("toml"))
def test_a_configuration_is_valid(block: Block, tmp_path: Path) -> None:
    assert tomllib.loads(block.text)
    if not block.text.startswith(OTHER_TOML):
        file = tmp_path / "gateway.toml"
        file.write_text(with_files(block.text, tmp_path))
        load(file)


@pytest.mark.parametrize("block", of("sh", "console"))
def test_commands_exist_with_their_options(block: Block) -> None:
    subprocess.run(["bash", "-n", "-c", block.commands], check=True, timeout=10)
    for words in commands(block):
        match words:
            case ["make", target, *_]:
                assert target in TARGETS
            case ["gateway", *arguments]:
                parse(gateway, arguments)
            case ["gatewayctl", *arguments] if arguments[0] not in PLUGIN_VERBS:
                find_command(arguments[0])
                parse(gatewayctl, arguments)


def with_files(text: str, directory: Path) -> str:
    """Return a configuration whose certificates exist, and whose directory of plugins is a directory."""
    for name in re.findall(r'"/etc/gateway/([\w.]+\.(?:pem|key))"', text):
        (directory / name).touch()
    return text.replace("/etc/gateway/plugins", str(directory)).replace("/etc/gateway/", f"{directory}/")


def test_each_page_that_uses_pip_names_the_environment() -> None:
    """Debian's own pip refuses to install packages."""
    without = []
    for page in (*PAGES, *sorted((ROOT / "examples").rglob("*.md"))):
        text = page.read_text().replace("\n", " ")
        if re.search(r"(?<![/\w-])pip install", text) and not re.search(
            r"environment\]\([^)]*#the-environment\)", text
        ):
            without.append(str(page.relative_to(ROOT)))
    # notes on extras, in tables, and texts of errors
    assert without == ["docs/configuration.md", "docs/recording.md", "docs/reference/errors.md"]


def commands(block: Block) -> list[list[str]]:
    """Return the words of each command, which a quote or a backslash continues in the next line.

    A redirection and what follows it are left out.
    """
    found, begun = [], ""
    for line in block.commands.replace("\\\n", " ").splitlines():
        begun += line
        try:
            found.append(shlex.split(begun.partition(" > ")[0], comments=True))
        except ValueError:  # a quote is open
            begun += "\n"
            continue
        begun = ""
    return found


def parse(group: click.Group, arguments: list[str]) -> None:
    """Parse a command line of a group, and of groups in it. :raises click.UsageError: if it is wrong."""
    command: click.Command = group
    context = None
    while isinstance(command, click.Group):
        context = command.make_context(command.name, list(arguments), parent=context)
        name, found, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None, name
        command = found
    try:
        command.make_context(command.name, list(arguments), parent=context)
    except click.BadParameter as error:
        if "does not exist" not in error.message:  # the reader has that file
            raise
