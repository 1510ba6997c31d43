"""CONTRIBUTING.md is correct: the places it names exist, and its examples run in a copy of the sources."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from gateway.config import load
from gateway.kernel.messages.message import Message
from gateway.plugins.registry import load_plugins
from gateway.testing import MemoryBroker, check_exchange_type, header_of

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "CONTRIBUTING.md").read_text()

#: The parts of the sources that the examples change or need.
FOLDERS: Final = ("gateway", "protocols", "storage", "plugins", "pipeline", "tests", "docs", "etc")

#: The tests of the copy: those of the examples, and those of the documents that a feature and a setting appear in.
CHECKS: Final = (
    "tests/behaviour/test_max_body.py",
    "tests/broker/test_contact.py",
    "tests/config/test_settings.py::test_the_template_and_the_configuration_page_match_the_settings",
    "tests/config/test_settings.py::test_the_table_of_reloads_contains_each_setting_that_a_reload_applies_and_no_other",
    "tests/kernel/settings/test_queue_docs.py",
    "tests/architecture/test_glossary.py",
)

EXAMPLES: Final = dict(re.findall(r"^```(?:python|toml)\n# (.+?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
DIFFS: Final = re.findall(r"^```diff\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def places() -> Iterator[tuple[str, str]]:
    """Yield the modules of the table of places, each with a name in it."""
    for path, names in re.findall(r"^\|[^|]*\| `(\S+\.py)` \| (.+) \|$", PAGE, re.MULTILINE):
        for name in re.findall(r"`(\w+(?:\.\w+)?)`", names):
            if not name.endswith(".py"):
                yield path, name


def names_in(file: Path) -> Iterator[str]:
    """Yield the functions, classes, methods and tables of a module."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


@pytest.mark.parametrize(("path", "name"), list(places()))
def test_each_place_exists(path: str, name: str) -> None:
    assert name in set(names_in(ROOT / path))


def changed(text: str, hunk: str) -> str:
    """Return the text with a hunk applied: its context, which must occur once, and the lines to add."""
    lines = hunk.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line.startswith(" "))
    new = "".join(line[1:] for line in lines)
    assert f"\n{text}".count(f"\n{old}") == 1, f"these lines must occur once:\n{old}"
    return f"\n{text}".replace(f"\n{old}", f"\n{new}")[1:]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources with all examples of features and settings in it."""
    copy = tmp_path_factory.mktemp("sources")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns(".*", "node_modules"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for path, source in EXAMPLES.items():
        if "/" in path:
            (copy / path).write_text(source)
    for file in re.split(r"^--- ", "".join(DIFFS), flags=re.MULTILINE)[1:]:
        path, _, hunks = file.partition("\n")
        for hunk in hunks.split("@@\n"):
            (copy / path).write_text(changed((copy / path).read_text(), hunk))
    return copy


def run(copy: Path, *module: str) -> None:
    """Run a module of Python in the copy; it must succeed."""
    path = os.pathsep.join(str(copy / folder) for folder in (".", "protocols", "storage", "plugins"))
    command = [sys.executable, "-m", *module]
    ended = subprocess.run(
        command,
        cwd=copy,
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, f"{' '.join(module)}:\n{ended.stdout}{ended.stderr}"


def test_the_examples_of_a_feature_and_a_setting_pass_their_tests(copy: Path) -> None:
    run(copy, "gateway.config.writing")
    run(copy, "pytest", "-q", *CHECKS)


def test_the_examples_are_formatted_and_typed(copy: Path) -> None:
    files = [path for path in EXAMPLES if "/" in path]
    run(copy, "ruff", "check", *files)
    run(copy, "ruff", "format", "--check", *files)


def test_the_plugin_routes_to_the_queue_that_was_bound_first(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(EXAMPLES["first.py"])
    (tmp_path / "first.toml").write_text(EXAMPLES["first.toml"].replace("/tmp/plugins", str(tmp_path)))
    settings = load(tmp_path / "first.toml")
    registry = load_plugins(settings.plugins_dir)
    plugins = settings.vhosts["/"].plugins
    check_exchange_type(registry.view("/", plugins).exchange_types["x-first"])
    vhost = MemoryBroker(registry=registry).kernel.declare_vhost("first", plugins=plugins)
    exchange = vhost.declare_exchange("e", "x-first")
    queues = [vhost.declare_queue(name) for name in ("q1", "q2")]
    for queue in queues:
        vhost.bind(exchange, queue, "key")
    vhost.publish(exchange, Message("e", "", header_of(), b"m"))
    assert [len(queue) for queue in queues] == [1, 0]
