"""The ``gateway`` command line: output and exit codes."""

import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.config import Configured, Settings, load
from gateway.kernel.errors import ConfigurationError, InternalError, StorageError
from gateway.version import VERSION

PLUGIN = "from gateway.hookspecs import hookimpl\n@hookimpl\ndef gateway_exchange_types():\n    return {}\n"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Replace the broker: collect the settings passed to it, and exit at once with code 3."""
    settings: list[Settings] = []

    def run(given: Configured, read: Callable[[], Configured], advances: object) -> int:
        settings.append(given.settings)
        return 3

    app = types.ModuleType("gateway.node.app")
    app.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gateway.node.app", app)
    monkeypatch.setattr("gateway.cli.run.stop_at_once", lambda: None)  # keep the signal handlers of the test process
    return settings


def fails_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def run(given: Settings, read_settings: Callable[[], Settings], advances: object) -> int:
        raise error

    app = types.ModuleType("gateway.node.app")
    app.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gateway.node.app", app)
    monkeypatch.setattr("gateway.cli.run.stop_at_once", lambda: None)  # keep the signal handlers of the test process


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out in (f"gateway {VERSION} (source)\n", f"gateway {VERSION} (machine code)\n")


def test_run_starts_the_broker_with_the_settings_and_ends_with_its_code(
    started: list[Settings], tmp_path: Path
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[amqp]\nport = 1\nheartbeat_s = 9\n", encoding="utf-8")
    arguments = ["run", "--config", str(file), "--data", "d", "--set", "amqp.port=2", "--set", "log.level=debug"]
    assert main(arguments) == 3
    assert started == [load(file, ["amqp.port=2", "log.level=debug", "data=d"])]
    assert (started[0].amqp.port, started[0].data) == (2, Path("d"))


def test_a_data_directory_may_contain_special_characters(started: list[Settings]) -> None:
    for name in ('a "b" = 1', '"quoted"', "1", "with spaces"):
        main(["run", "--data", name])
        assert started[-1].data == Path(name)


USAGE = [["run", "--wrong"], ["walk"], ["run", "extra"], ["run", "--set"]]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_a_wrong_command_line_exits_with_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 64
    assert "Error: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "check"])
def test_wrong_settings_exit_with_65_and_one_line_for_each(
    command: str, started: list[Settings], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--set", "amqp.port=x", "--set", "amqp.prt=1"]) == 65
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "gateway: --set amqp.port: must be a port from 1 to 65535, 0 for any free port, or \"off\", not 'x'",
        "gateway: --set amqp.prt: no such setting; did you mean amqp.port?",
    ]
    assert started == []


FAILURES = [(ConfigurationError("no"), 65), (StorageError("no"), 69), (InternalError("no"), 70)]


@pytest.mark.parametrize(("error", "code"), FAILURES, ids=lambda value: type(value).__name__)
def test_a_failed_start_is_reported_in_one_line(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_with(monkeypatch, error)
    assert main(["run"]) == code
    assert capsys.readouterr().err == "gateway: no\n"


# check


def test_check_prints_settings_that_can_be_loaded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", "--set", "amqp.port=0", "--set", "disk_free_limit=1GB"]) == 0
    file = tmp_path / "effective.toml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert load(file) == load(None, ["amqp.port=0", "disk_free_limit=1GB"])


def test_check_reads_the_definitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "definitions.json"
    file.write_text('{"users": [{}]}', encoding="utf-8")
    assert main(["check", "--set", f"load_definitions={file}"]) == 65
    assert capsys.readouterr().err == f"gateway: {file}: users[0].name: is missing\n"


def test_check_loads_the_plugins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN, encoding="utf-8")
    options = ["--set", f"plugins_dir={tmp_path}", "--set", 'vhosts."/".plugins.mine={}']
    assert main(["check", *options]) == 0
    (tmp_path / "mine.py").write_text("1 / 0\n", encoding="utf-8")
    assert main(["check", *options]) == 65
    assert f"{tmp_path}/mine.py:1" in capsys.readouterr().err


def test_check_reports_a_missing_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--set", 'vhosts."/".plugins.none={}']) == 65
    assert "'none'" in capsys.readouterr().err


def test_the_command_can_be_run_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "gateway", "--version"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (result.returncode, result.stdout) == (0, f"gateway {VERSION} (source)\n")


def test_check_hides_the_secrets_of_plugins(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    secret = "a secret of thirty-two characters"
    file = tmp_path / "gateway.toml"
    file.write_text(
        '[vhosts."/".plugins.auth-oauth2]\n'
        f'resource_server_id = "mq"\nhmac_keys = {{ one = "{secret}" }}\nalgorithms = ["HS256"]\n'
        '[vhosts."/".plugins.auth-ldap]\n'
        'servers = ["ldap://here"]\nbind_dn = "cn=admin"\nbind_password = "hush"\n'
    )
    assert main(["check", "--config", str(file), "--data", str(tmp_path / "data")]) == 0
    printed = capsys.readouterr().out
    assert 'bind_password = "(hidden)"' in printed
    assert 'hmac_keys = "(hidden)"' in printed
    assert secret not in printed
    assert "hush" not in printed
