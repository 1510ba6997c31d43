"""Plugins change in a running broker over HTTP and by ``gatewayctl``."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli.ctl.errors import CommandFailed
from gateway.cli.ctl.main import gatewayctl
from tests.management_client import get, request
from tests.plugins.live import first_bound
from tests.running import Gateway

SLASH = "plugins/%2F"


@pytest.fixture
def plugins_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "mine.py").write_text(first_bound(2))
    return directory


def ctl(gateway: Gateway, *arguments: str) -> str:
    """Return the output of ``gatewayctl plugin``; an error is raised as ``CommandFailed``."""
    host, port = gateway.addresses["management"]
    line = ["--url", f"http://{host}:{port}", "-q", "plugin", *arguments]
    result = CliRunner().invoke(gatewayctl, line, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def state(gateway: Gateway, name: str, vhost: str = "%2F") -> Any:
    return get(gateway, f"plugins/{vhost}/{name}")


def test_plugins_are_changed_over_http(gateway: Gateway, plugins_dir: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    assert state(gateway, "mine")["state"] == "disabled"
    request(gateway, "PUT", f"{SLASH}/mine", {})
    row = state(gateway, "mine")
    assert (row["state"], row["set_by"], row["version"], row["exchange_types"]) == (
        "enabled", "virtual host", 1, ["x-mine"],
    )  # fmt: skip
    (plugins_dir / "mine.py").write_text(first_bound(1))
    request(gateway, "POST", f"{SLASH}/mine/reload", {})
    assert (state(gateway, "mine")["version"], state(gateway, "mine")["former_version"]) == (2, 1)
    request(gateway, "POST", f"{SLASH}/mine/rollback", {})
    assert state(gateway, "mine")["version"] == 1
    gateway.restart(f"plugins_dir={plugins_dir}")
    assert state(gateway, "mine")["state"] == "enabled"
    request(gateway, "DELETE", f"{SLASH}/mine")
    assert state(gateway, "mine")["state"] == "disabled"


def test_a_virtual_host_made_over_http_enables_plugins(gateway: Gateway, plugins_dir: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    request(gateway, "PUT", "vhosts/made", {"plugins": {"mine": {}}})
    request(gateway, "PUT", "exchanges/made/e", {"type": "x-mine"})
    assert get(gateway, "exchanges/made/e")["type"] == "x-mine"
    request(gateway, "PUT", "plugins/made/exchange-modulus-hash", {})
    assert state(gateway, "exchange-modulus-hash", "made")["state"] == "enabled"


def test_plugins_are_changed_by_gatewayctl(gateway: Gateway, plugins_dir: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    ctl(gateway, "enable", "mine")
    assert "mine\tenabled" in ctl(gateway, "list", "-e", "-s").replace(" ", "")
    assert "is enabled" in ctl(gateway, "is_enabled", "mine")
    (plugins_dir / "mine.py").write_text(first_bound(1))
    ctl(gateway, "reload", "mine")
    ctl(gateway, "rollback", "mine")
    ctl(gateway, "disable", "mine")
    with pytest.raises(CommandFailed, match="is disabled"):
        ctl(gateway, "is_enabled", "mine")
    ctl(gateway, "settings", "auth-certificate", '{"login_from": "common_name"}')
    assert "common_name" in ctl(gateway, "settings", "auth-certificate")
    described = ctl(gateway, "describe", "auth-certificate")
    assert "login_from: 'common_name' or 'distinguished_name'; default 'distinguished_name'." in described


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("enable", "lost"), "'lost' was not found"),
        (("enable", "mine", "--settings", '{"a": 1}'), "has no settings, but was given a"),
        (("settings", "auth-certificate", '{"login_from": 1}'), "login_from: must be 'common_name' or"),
        (("disable", "exchange-direct"), "always enabled"),
        (("rollback", "mine"), "is not enabled"),
        (("enable", "rabbitmq_mqtt"), "MQTT is built in"),
        (("set", "mine"), "use plugin enable"),
        (("directories",), "plugins_dir"),
        (("upload", "mine", __file__), "plugins.allow_upload is false"),
    ],
)
def test_errors_say_what_to_do(gateway: Gateway, plugins_dir: Path, arguments: tuple[str, ...], reason: str) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    with pytest.raises(CommandFailed, match=reason):
        ctl(gateway, *arguments)


def test_a_file_is_uploaded_if_a_setting_allows_it(gateway: Gateway, plugins_dir: Path, tmp_path: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}", "plugins.allow_upload=true")
    source = tmp_path / "new.py"
    source.write_text(first_bound(1, "x-new"))
    ctl(gateway, "upload", "new", str(source))
    ctl(gateway, "enable", "new")
    assert state(gateway, "new")["exchange_types"] == ["x-new"]
    assert "plugin file uploaded" in gateway.log
    assert "user=guest" in gateway.log or '"guest"' in gateway.log
    source.write_text("def (")
    with pytest.raises(CommandFailed, match="is not Python"):
        ctl(gateway, "upload", "new", str(source))
    with pytest.raises(CommandFailed, match="is not a file"):
        ctl(gateway, "upload", "auth-internal", str(tmp_path / "new.py"))
