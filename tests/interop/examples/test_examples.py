"""The programs of `examples/`: each page is followed as written, on a broker of its own."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.interop.pages.blocks import ROOT
from tests.interop.pages.reader import Reader
from tests.ports import free_port
from tests.running import Gateway, started

EXAMPLES: Final = ROOT / "examples"

#: The examples with programs. Those of `configurations` are for other servers.
NAMES: Final = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md") if path.parent.name != "configurations")


@pytest.mark.timeout(300)  # of a busy machine
@pytest.mark.parametrize("name", NAMES)
def test_an_example_does_what_its_page_shows(name: str, tmp_path: Path) -> None:
    directory = tmp_path / name
    shutil.copytree(EXAMPLES / name, directory, ignore=shutil.ignore_patterns("__pycache__"))
    gateway = Gateway(tmp_path / "gateway")
    if (directory / "gateway.toml").exists():
        gateway.options = ("--config", str(directory / "gateway.toml"))
    with started(gateway):
        Reader(gateway, directory, ports={8000: free_port()}).follow(EXAMPLES / name / "README.md")
    assert not gateway.log.count(" error ")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_an_example_runs_each_of_its_programs(name: str) -> None:
    programs = list((EXAMPLES / name).glob("*.py"))
    page = (EXAMPLES / name / "README.md").read_text()
    imported = "".join(path.read_text() for path in programs)
    assert [path.name for path in programs if path.stem not in page and f"from {path.stem} " not in imported] == []


def test_the_list_of_examples_is_complete() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert [name for name in (*NAMES, "configurations") if f"({name}/README.md)" not in page] == []
