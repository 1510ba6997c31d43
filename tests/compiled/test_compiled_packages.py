"""The packages that `make wheel` compiles: their modules, and their behaviour."""

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

#: Compiling takes a minute or two, the tests of the compiled packages one and a half.
pytestmark = pytest.mark.timeout(900)

PRINT_ORIGINS = """
import sys
from importlib.util import find_spec
for name in sys.argv[1:]:
    print(name, find_spec(name).origin)
"""

WEAK_REFERENCES = """
from weakref import WeakKeyDictionary, ref
from gateway.net.server_transport import ServerTransport
kept = WeakKeyDictionary()
for _ in range(1000):
    transport = ServerTransport.__new__(ServerTransport)
    kept[transport], reference = "a", ref(transport)
    del transport
    assert reference() is None
print(len(kept))
"""


def name_of(path: str) -> str:
    """Return the module name of a listed file, without its top folder."""
    parts = Path(path).with_suffix("").parts
    return ".".join(parts if parts[0] == "gateway" else parts[1:])


def run_setup(**environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``setup.py`` with the compile option, without building."""
    environment["GATEWAY_COMPILE"] = "1"
    command = (sys.executable, "setup.py", "--version")
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_each_listed_module_exists_and_is_listed_once() -> None:
    assert len(set(LISTED)) == len(LISTED)
    assert [path for path in LISTED if not (ROOT / path).is_file()] == []


def test_no_module_with_hooks_is_compiled() -> None:
    assert [path for path in LISTED if "hookimpl" in (ROOT / path).read_text()] == []


def test_without_a_compiler_the_build_fails_with_one_line() -> None:
    refused = run_setup(PATH="/nowhere")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "needs a C compiler" in refused.stderr


def test_an_unknown_profile_is_refused_in_one_line() -> None:
    refused = run_setup(GATEWAY_PROFILE="guess", PATH=os.environ["PATH"])
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == "GATEWAY_PROFILE is 'guess'; it must be 'quick', 'count', 'heed' or empty"


def test_every_listed_module_is_compiled_and_none_beside_the_source(
    environment: Mapping[str, str],
) -> None:
    command = (sys.executable, "-c", PRINT_ORIGINS, *map(name_of, LISTED))
    output = subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=True).stdout
    places = dict(line.split(" ", 1) for line in output.splitlines())
    assert len(places) == len(LISTED)
    assert [name for name, place in places.items() if ".compiled/" not in place or not place.endswith(".so")] == []
    folders = ("gateway", "protocols", "storage", "plugins")
    assert [path for folder in folders for path in (ROOT / folder).rglob("*.so")] == []


def test_a_weak_reference_to_a_transport_ends_with_it(environment: Mapping[str, str]) -> None:
    command = (sys.executable, "-c", WEAK_REFERENCES)
    output = subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=True).stdout
    assert output == "0\n"


@pytest.mark.parametrize(
    "tests",
    [
        "tests/kernel tests/protocols tests/access tests/columnar/test_direct_rows.py",
        "tests/plugins tests/net tests/storage tests/cluster",
        "tests/bridges tests/logs tests/definitions tests/node tests/recording tests/scenarios tests/selectors",
        "tests/behaviour",
    ],
)
def test_the_compiled_packages_pass_tests_of_the_source(environment: Mapping[str, str], tests: str) -> None:
    # independent of the options of the outer make; few examples, and the tests of volume ran as source
    chosen = f"ARGS=-m 'not volume and not source' {tests}"
    output = make("test-wheel", chosen, "PROFILE=quick", **{effort.VARIABLE: "little"})
    assert " passed" in output.splitlines()[-1], output[-5000:]
