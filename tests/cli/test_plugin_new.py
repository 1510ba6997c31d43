"""``gateway plugin new``: each kind is a package whose test passes and which a broker loads."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gateway.cli.exits import USAGE
from gateway.cli.main import main
from gateway.cli.plugin_package import KINDS
from gateway.plugins.registry import load_plugins


def test_the_test_of_each_new_package_passes(tmp_path: Path) -> None:
    """All in one session of pytest: a session for each would import the broker each time."""
    for kind in KINDS:
        directory = tmp_path / kind
        assert main(["plugin", "new", f"my-{kind}", "--kind", kind, "--directory", str(directory)]) == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(KINDS)} passed" in done.stdout


def test_a_new_package_depends_on_the_distribution_of_the_broker(tmp_path: Path) -> None:
    assert main(["plugin", "new", "my-plugin", "--directory", str(tmp_path)]) == 0
    own = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["name"]
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["dependencies"] == [own]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_is_loaded_and_enabled(kind: str, tmp_path: Path) -> None:
    assert main(["plugin", "new", "my-plugin", "--kind", kind, "--directory", str(tmp_path)]) == 0
    tmp_path.chmod(0o700)
    registry = load_plugins(tmp_path)
    view = registry.view("/", {"my_plugin": {}})
    assert "my_plugin" in view.names
    assert view.inert == {}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["My Plugin"], "a plugin's name is lower-case letters, digits and single hyphens, not 'My Plugin'"),
        (["class"], "a plugin's name is lower-case letters, digits and single hyphens, not 'class'"),
        (["auth-ldap"], "auth-ldap is a built-in plugin; choose another name"),
        (
            ["mine", "--kind", "queue"],
            "'queue' is not one of 'exchange', 'auth', 'tracer'",
        ),
    ],
)
def test_a_wrong_request_is_refused(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plugin", "new", *arguments]) == USAGE
    assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_files_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("mine")
    assert main(["plugin", "new", "mine", "--directory", str(tmp_path)]) == USAGE
    assert "exists and is not empty" in capsys.readouterr().err
    assert (tmp_path / "pyproject.toml").read_text() == "mine"
