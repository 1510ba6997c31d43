"""The packages that `make wheel` compiles: which modules they are, and that they do what the source does."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests import effort
from tests.compiled.building import ROOT, make

LISTED: Sequence[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["gateway"]["compiled"]

#: Compiling takes a minute or two, the tests of what is compiled one and a half.
pytestmark = pytest.mark.timeout(900)

ASK_WHERE = """
import sys
from importlib.util import find_spec
for name in sys.argv[1:]:
    print(name, find_spec(name).origin)
"""


def name_of(path: str) -> str:
    """Return the name under which a listed file is imported: its shelf is no part of it."""
    parts = Path(path).with_suffix("").parts
    return ".".join(parts if parts[0] == "gateway" else parts[1:])


def asked_to_compile(**environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``setup.py`` as `make wheel` does, though it builds nothing."""
    environment["GATEWAY_COMPILE"] = "1"
    command = (sys.executable, "setup.py", "--version")
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_each_listed_module_exists_and_is_listed_once() -> None:
    assert len(set(LISTED)) == len(LISTED)
    assert [path for path in LISTED if not (ROOT / path).is_file()] == []


def test_no_module_with_hooks_is_compiled() -> None:
    assert [path for path in LISTED if "hookimpl" in (ROOT / path).read_text()] == []


def test_without_a_compiler_the_build_fails_with_one_line() -> None:
    refused = asked_to_compile(PATH="/nowhere")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "needs a C compiler" in refused.stderr


def test_an_unknown_profile_is_refused_in_one_line() -> None:
    refused = asked_to_compile(GATEWAY_PROFILE="guess", PATH=os.environ["PATH"])
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == "GATEWAY_PROFILE is 'guess', and can be 'quick', 'count', 'heed' or empty"


def test_every_listed_module_is_compiled_and_none_beside_the_source(
    environment: Mapping[str, str],
) -> None:
    command = (sys.executable, "-c", ASK_WHERE, *map(name_of, LISTED))
    told = subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=True).stdout
    places = dict(line.split(" ", 1) for line in told.splitlines())
    assert len(places) == len(LISTED)
    assert [name for name, place in places.items() if ".compiled/" not in place or not place.endswith(".so")] == []
    shelves = ("gateway", "protocols", "storage", "plugins")
    assert [path for shelf in shelves for path in (ROOT / shelf).rglob("*.so")] == []


def test_the_kernel_and_the_protocols_pass_their_tests_compiled(environment: Mapping[str, str]) -> None:
    # whatever the make that runs this was told; and what guesses did so of the source already
    told = make("test-wheel", "ARGS=", "PROFILE=quick", **{effort.VARIABLE: "little"})
    assert " passed" in told.splitlines()[-1]
