"""The unit, the container and the chart: their files agree with the program."""

import importlib.util
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import yaml

from gateway.config import load
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


def test_the_image_runs_the_broker_with_the_settings_of_the_environment_and_of_its_file() -> None:
    dockerfile = (ETC / "container" / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["gateway"]\nCMD ["run"]\n' in dockerfile
    assert "GATEWAY_CONFIG=/etc/gateway/gateway.toml GATEWAY__DATA=/var/lib/gateway\n" in dockerfile
    assert "/opt/gateway/share/gateway/gateway.toml /etc/gateway/gateway.toml\n" in dockerfile
    assert load(None, (), {"GATEWAY__DATA": "/var/lib/gateway"}).data == Path("/var/lib/gateway")


def test_the_default_image_has_no_arrow_and_no_shell() -> None:
    stages = (ETC / "container" / "Dockerfile").read_text().split("\nFROM ")[1:]
    by_name = {stage.partition("\n")[0].partition(" AS ")[2]: stage for stage in stages}
    assert list(by_name) == ["build", "root", "broker", "arrow", ""]
    assert by_name[""] == "broker\n"
    assert (
        by_name["arrow"]
        == "broker AS arrow\nCOPY --from=build /opt/arrow /opt/gateway\n\n# The last stage is the default."
    )
    assert "mv pyarrow* /opt/arrow/" in by_name["build"]
    assert by_name["broker"].startswith("scratch ")
    assert "\nRUN" not in by_name["broker"] + by_name["arrow"], "there is no shell to run it"


def test_a_serving_broker_is_healthy_and_a_closed_port_is_not(tmp_path: Path) -> None:
    fault = program("healthy").fault
    gateway = Gateway(tmp_path, 'log.level="debug"').start()
    try:
        assert fault("127.0.0.1", str(gateway.addresses["amqp"][1])) == ""
        # All that the broker sent was read, so the system does not reset the connection.
        assert 'reason="Connection was closed cleanly."' in gateway.log_has("connection closed")
    finally:
        gateway.end()
    assert "refused" in fault("127.0.0.1", str(free_port()))


@pytest.mark.parametrize(
    ("environment", "file", "address"),
    [
        ({}, {}, ("127.0.0.1", "5672")),
        ({}, {"bind": "10.0.0.1", "amqp": {"port": 5673}}, ("10.0.0.1", "5673")),
        ({"GATEWAY__BIND": "::", "GATEWAY__AMQP__PORT": "1"}, {"bind": "10.0.0.1", "amqp": {"port": 2}}, ("::1", "1")),
        ({"GATEWAY__BIND": '"0.0.0.0"'}, {"amqp": {"port": "off"}}, ("127.0.0.1", "off")),
    ],
)
def test_the_health_check_asks_where_amqp_is(
    environment: dict[str, str], file: dict[str, Any], address: tuple[str, str]
) -> None:
    assert program("healthy").address(environment, file) == address


def test_the_health_check_reads_the_file_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    for text, reason in (
        ('[amqp]\nport = "off"', "this check needs a fixed port of AMQP, and amqp.port is off"),
        (f'bind = "127.0.0.1"\n[amqp]\nport = {free_port()}', "[Errno 111] Connection refused"),
        ("port", f"{file}: Expected '=' after a key in a key/value pair (at end of document)"),
    ):
        file.write_text(text)
        command = [sys.executable, ETC / "container" / "healthy.py"]
        done = subprocess.run(
            command, env={"GATEWAY_CONFIG": str(file)}, capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (1, f"{reason}\n")


def test_a_broker_that_is_starting_is_not_healthy() -> None:
    close = b"\x01\0\0\0\0\0\x0e\0\x0a\0\x32\x01\x40\x03own\0\0\0\0\xce"
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        answer = threads.submit(program("healthy").fault, "127.0.0.1", str(listener.getsockname()[1]))
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
    check = next(line for line in lines if line.startswith("HEALTHCHECK"))
    assert check.endswith('CMD ["/opt/gateway/bin/python3", "/opt/gateway/bin/healthy.py"]')
    compose: dict[str, Any] = yaml.safe_load((ETC / "container" / "compose.yml").read_text())
    service = compose["services"]["gateway"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    settings = load(None, (), {**service["environment"], "GATEWAY__DEFAULT_PASS": "x"})
    assert (settings.default_user, settings.prometheus.bind) == ("admin", "*")


def test_the_cluster_to_try_needs_nothing_beside_its_own_files() -> None:
    compose: dict[str, Any] = yaml.safe_load((ETC / "cluster" / "compose.yml").read_text())
    nodes = [service for name, service in compose["services"].items() if name.startswith("gateway-")]
    assert [load(None, (), node["environment"]).node for node in nodes] == ["a", "b", "c"]
    assert all("build" not in service for service in compose["services"].values())


def test_units_install_settings_that_only_root_and_the_service_read() -> None:
    for unit, group in (("gateway", "gateway"), ("cluster/gateway", "gateway"), ("cluster/nats-server", "nats")):
        assert f"install -D --mode=640 --group={group} etc/" in (ETC / f"{unit}.service").read_text()


def test_all_units_have_the_same_restrictions() -> None:
    def restrictions(unit: str) -> set[str]:
        service = (ETC / unit).read_text().partition("NoNewPrivileges")
        lines = (service[1] + service[2].partition("[Install]")[0]).splitlines()
        return {line for line in lines if line and not line.startswith("#")}

    alone = restrictions("gateway.service")
    assert {"CapabilityBoundingSet=", "MemoryDenyWriteExecute=yes", "SystemCallFilter=@system-service"} <= alone
    assert restrictions("cluster/gateway.service") == restrictions("cluster/nats-server.service") == alone


def test_logrotate_signals_no_process() -> None:
    rotation = (ETC / "debian" / "gateway-broker.gateway.logrotate").read_text()
    assert "postrotate" not in rotation
    assert "create 0640 gateway gateway" in rotation


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
        interpreter = script.read_text().partition("\n")[0].removeprefix("#!")
        assert interpreter in ("/bin/sh", "/bin/bash")
        checked = subprocess.run([interpreter, "-n", script], capture_output=True, text=True, check=False, timeout=30)
        assert (checked.returncode, checked.stderr) == (0, ""), script.name
        assert re.search(r"^set -e", script.read_text(), re.MULTILINE), script.name
    assert len(scripts) == 5
