"""The unit, the container and the chart: their files agree with the program."""

import importlib.util
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import yaml

from gateway.config import load
from gateway.config.catalogue import settings_by_key
from gateway.kernel.errors import ConfigurationError
from gateway.version import VERSION
from tests.ports import free_port
from tests.running import Gateway

ETC: Final = Path(__file__).parents[3] / "etc"
CHART: Final = ETC / "helm" / "gateway-broker"

#: Ports of the listeners without a certificate that are enabled by default.
PORTS: Final = {5672, 1883, 61613, 15672, 15675, 15674, 15692}


def program(name: str) -> ModuleType:
    """Import a program of the container."""
    spec = importlib.util.spec_from_file_location(name, ETC / "container" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_settings_come_from_the_environment(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("0123\n")
    environment = {
        "GATEWAY__AMQP__HEARTBEAT_S": "30",
        "GATEWAY__DEFAULT_PASS_FILE": str(password),
        "GATEWAY__LOG__FILE": "broker.log",
        "GATEWAY_SERVICE_HOST": "10.0.0.1",
    }
    settings = load(None, list(program("entrypoint").settings(environment)))
    assert (settings.amqp.heartbeat_s, settings.default_pass.get_secret_value()) == (30, "0123")
    assert settings.log.file == Path("broker.log")


def test_a_setting_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="heartbeats"):
        load(None, list(program("entrypoint").settings({"GATEWAY__AMQP__HEARTBEATS": "30"})))


def test_no_setting_looks_like_one_that_is_read_from_a_file() -> None:
    assert [key for key in settings_by_key() if key.endswith("_file")] == []


def test_the_container_runs_the_broker_or_another_command() -> None:
    command = program("entrypoint").command
    environment = {"GATEWAY__BIND": "*"}
    run = ["gateway", "run", "--data", "/var/lib/gateway"]
    assert command([], environment, False) == [*run, "--set", "bind=*"]
    assert command(["run", "--set", "amqp.port=1"], {}, True) == [
        *run, "--config", "/etc/gateway/gateway.toml", "--set", "amqp.port=1",
    ]  # fmt: skip
    assert command(["check"], environment, False) == ["gateway", "check"]


def test_a_serving_broker_is_healthy_and_a_closed_port_is_not(tmp_path: Path) -> None:
    fault = program("healthy").fault
    gateway = Gateway(tmp_path).start()
    try:
        assert fault(gateway.addresses["amqp"][1]) == ""
    finally:
        gateway.end()
    assert "refused" in fault(free_port())


def test_a_broker_that_is_starting_is_not_healthy() -> None:
    close = b"\x01\0\0\0\0\0\x0e\0\x0a\0\x32\x01\x40\x03own\0\0\0\0\xce"
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        answer = threads.submit(program("healthy").fault, listener.getsockname()[1])
        client, _ = listener.accept()
        with client:
            client.sendall(close)
            assert answer.result(30) == "the broker does not serve clients yet"


def test_the_image_and_the_chart_have_the_ports_and_the_version_of_the_broker() -> None:
    dockerfile = (ETC / "container" / "Dockerfile").read_text()
    exposed = re.search(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE)
    assert exposed is not None
    assert {int(port) for port in exposed[1].split()} >= PORTS
    chart: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values["service"]["ports"].values()) == PORTS


def test_the_image_has_a_user_a_health_check_and_no_root() -> None:
    lines = (ETC / "container" / "Dockerfile").read_text().splitlines()
    assert "USER 10001:10001" in lines
    assert [line for line in lines if line.startswith(("HEALTHCHECK", "ENTRYPOINT"))] != []
    compose: dict[str, Any] = yaml.safe_load((ETC / "container" / "compose.yml").read_text())
    service = compose["services"]["gateway"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    load(None, list(program("entrypoint").settings({**service["environment"], "GATEWAY__DEFAULT_PASS": "x"})))


def test_each_value_that_the_templates_read_is_in_the_chart() -> None:
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    for template in sorted((CHART / "templates").iterdir()):
        for path in re.findall(r"\.Values\.([\w.]+)", template.read_text()):
            here: Any = values
            for part in path.split("."):
                assert part in here, f"{template.name} reads {path}"
                here = here[part]


def test_the_maintainer_scripts_are_shell() -> None:
    scripts = [*(ETC / "debian" / name for name in ("postinst", "prerm", "postrm")), *ETC.glob("packaging/*.sh")]
    for script in scripts:
        subprocess.run(["bash", "-n", script], check=True, timeout=30)
    assert len(scripts) == 5
