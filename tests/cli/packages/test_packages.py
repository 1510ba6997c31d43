"""The source archive and the wheel: built without a checkout and without a compiler, installed, and used."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.cli.packages.checkout import ROOT, copy_checkout

#: Building and installing takes some ten seconds, on a loaded machine several times as long.
pytestmark = pytest.mark.timeout(600)

#: Beside the packages in the wheel, below the prefix of the environment.
BESIDE: Final = (
    *("gateway/gateway.toml", "gateway/definitions.json", "gateway/gateway.service"),
    *("gateway/grafana/gateway.json", "gateway/prometheus/rules.yml", "gateway/cluster/nats-server.conf"),
    *("man/man1/gateway.1", "man/man1/gatewayctl.1"),
    *(
        "bash-completion/completions/gatewayctl",
        "zsh/site-functions/_gateway",
        "fish/vendor_completions.d/gateway.fish",
    ),
)


def run(command: Sequence[str | Path], place: Path, **environment: str) -> str:
    """Run a command without a compiler on its path; return its output, that of errors too."""
    needed = {"PATH": os.path.dirname(sys.executable), "HOME": str(place), **environment}
    done = subprocess.run(
        command, cwd=place, env=needed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive."""
    place = tmp_path_factory.mktemp("checkout")
    copy_checkout(place)
    build = "import sys; sys.path.insert(0, 'etc/packaging'); import gateway_build; gateway_build.build_sdist('dist')"
    run([sys.executable, "-c", build], place)
    return next((place / "dist").glob("*.tar.gz"))


@pytest.fixture(scope="module")
def built(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The pure wheel, built from the archive only, and the output of its build."""
    place = tmp_path_factory.mktemp("archive")
    with tarfile.open(archive) as members:
        members.extractall(place)
    source = next(place.iterdir())
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--verbose", "--wheel-dir", str(place))
    output = run([sys.executable, "-m", "pip", "wheel", *options, str(source)], place)
    return next(place.glob("*.whl")), output


def test_without_a_compiler_a_build_says_what_the_wheel_lacks(built: tuple[Path, str]) -> None:
    wheel, output = built
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "this wheel is Python source" in output


@pytest.mark.parametrize("is_compiled", [False, True])
def test_only_a_compiled_wheel_needs_a_compiler_and_the_types_of_dependencies(is_compiled: bool) -> None:
    ask = "import sys; sys.path.insert(0, 'etc/packaging'); import gateway_build as build;"
    asked = {"GATEWAY_COMPILE": "1"} if is_compiled else {}
    output = run([sys.executable, "-c", ask + "print(build.get_requires_for_build_wheel())"], ROOT, **asked)
    needed = ("mypy[mypyc]", "types-tabulate", "twisted", "pamqp")
    assert [name in output for name in needed] == [is_compiled] * len(needed)


def test_the_wheel_has_the_packages_and_files_of_the_checkout_and_no_others(built: tuple[Path, str]) -> None:
    names = set(zipfile.ZipFile(built[0]).namelist())
    shelves = ("", "protocols", "storage", "plugins", "pipeline")
    modules = {
        str(path.relative_to(ROOT / shelf))
        for shelf in shelves
        for pattern in ("gateway/**/*.py", "gateway_*/**/*.py", "pyspark_gateway/**/*.py")
        for path in (ROOT / shelf).glob(pattern)
    }
    assert {name for name in names if name.endswith(".py")} == modules
    data = {name.partition(".data/data/share/")[2] for name in names if ".data/data/share/" in name}
    assert data.issuperset(BESIDE)
    assert not [name for name in names if name.endswith((".c", ".so"))]


def test_the_installed_wheel_serves_clients(built: tuple[Path, str], tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    install = ("install", "--no-deps", "--no-index", "--no-compile", "--quiet", str(built[0]))
    run([sys.executable, "-m", "pip", "--python", str(python), *install], tmp_path)
    # The dependencies of this environment, but not its checkout: Python ignores the .pth files of a directory that such
    # a file names.
    packages = next(environment.glob("lib/python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    imported = run([python, "-c", "import gateway; print(gateway.__file__)"], tmp_path)
    assert imported.strip() == str(packages / "gateway" / "__init__.py")
    output = run([python, ROOT / "etc" / "packaging" / "try_broker.py", "--form", "source"], tmp_path)
    assert "published and consumed a message" in output
    assert (environment / "share" / "man" / "man1" / "gateway.1").is_file()


def test_make_refuses_an_older_python_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")  # as for the question whether it is new enough
    old.chmod(0o755)
    place = tmp_path / "environment"
    command = ("make", f"{place}/bin/pip", f"VENV={place}", f"PYTHON={old}")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    refused = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    message = refused.stderr.splitlines()[0]
    assert message == f"gateway needs Python 3.11 or newer, which {old} is not: apt-get install python3"
    assert not place.exists()
