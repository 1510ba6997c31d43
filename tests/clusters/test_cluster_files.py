"""The files in ``etc/cluster`` are valid, and the cluster of the compose file is complete."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config import load
from tests.jetstream.nats_servers import PROGRAM

FILES = Path(__file__).parents[2] / "etc" / "cluster"


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FILES / "compose.yml").read_text())["services"]
    return found


def test_the_compose_file_has_three_servers_and_three_nodes() -> None:
    nodes = {name for name, service in services().items() if service["image"] == "gateway-broker"}
    servers = services().keys() - nodes
    assert (len(nodes), len(servers)) == (3, 3)
    environments = [service["environment"] for name, service in services().items() if name in nodes]
    assert {load(FILES / "gateway.toml", (), one).node for one in environments} == {"a", "b", "c"}
    settings = load(FILES / "gateway.toml")
    assert {url.split("/")[2].split(":")[0] for url in settings.cluster.servers} == servers


def test_each_port_of_the_host_is_given_once() -> None:
    ports = [port.rpartition(":")[0] for service in services().values() for port in service.get("ports", ())]
    assert len(ports) == len(set(ports)) == 9
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_files_that_the_containers_mount_exist() -> None:
    mounted = [each.split(":")[0] for service in services().values() for each in service["volumes"]]
    assert {each for each in mounted if each.startswith("./")} == {"./nats-server.conf", "./gateway.toml"}
    assert all((FILES / each).is_file() for each in mounted if each.startswith("./"))


def test_the_servers_write_before_they_acknowledge() -> None:
    configuration = FILES / "nats-server.conf"
    assert "sync_interval: always" in configuration.read_text()
    command = [str(PROGRAM), "-t", "-c", str(configuration)]
    checked = subprocess.run(command, env={"HOSTNAME": "n1"}, capture_output=True, text=True, timeout=30, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("unit", ["gateway.service", "nats-server.service"])
def test_a_unit_has_a_command_a_user_and_a_directory(unit: str) -> None:
    lines = (FILES / unit).read_text().splitlines()
    keys = {line.partition("=")[0] for line in lines if "=" in line and not line.startswith("#")}
    assert {"ExecStart", "User", "StateDirectory", "Restart", "WantedBy", "NoNewPrivileges"} <= keys
