"""The verbs of probes, against a node that is well and one that is not."""

import json
import socket

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

NODE = {
    "name": "gateway@here",
    "running": True,
    "os_pid": "12",
    "uptime": 61_500,
    "mem_used": 2_000_000_000,
    "mem_limit": 4_000_000_000,
    "mem_alarm": True,
    "disk_free_alarm": False,
    "disk_free": 3_000_000_000,
    "disk_free_limit": 50_000_000,
    "fd_used": 3,
    "fd_total": 100,
    "sockets_used": 1,
    "sockets_total": 90,
    "enabled_plugins": ["auth"],
}

CHECKS = [
    ("check_local_alarms", "local-alarms", "Node gateway@here reported no local alarms"),
    ("check_alarms", "alarms", "Node gateway@here reported no alarms, local or clusterwide"),
    ("check_virtual_hosts", "virtual-hosts", "Node gateway@here reported all vhosts as running"),
    ("check_port_listener 5672", "port-listener/5672", "A listener for port 5672 is running on node gateway@here."),
    ("check_protocol_listener amqp", "protocol-listener/amqp", None),
]


@pytest.mark.parametrize(("line", "path", "said"), CHECKS, ids=[check[0] for check in CHECKS])
def test_a_check_that_passes(ctl: Ctl, api: FakeApi, line: str, path: str, said: str | None) -> None:
    api.answer(f"GET health/checks/{path}", {"status": "ok"})
    ended = ctl(*line.split(), "-q")
    assert ended.code == 0
    assert ended.out == f"{said or 'A listener for protocol amqp is running on node gateway@here.'}\n"


@pytest.mark.parametrize(("line", "path", "said"), CHECKS, ids=[check[0] for check in CHECKS])
def test_a_check_that_fails_is_69(ctl: Ctl, api: FakeApi, line: str, path: str, said: str | None) -> None:
    api.answer(f"GET health/checks/{path}", {"status": "failed", "reason": "it is so", "ports": [9, 7]}, 503)
    ended = ctl(*line.split(), "-q")
    assert (ended.code, ended.out) == (69, "")
    assert ended.err.startswith("Error: ")


def test_a_missing_port_is_told_with_those_there_are(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET health/checks/port-listener/9", {"status": "failed", "missing": 9, "ports": [15672, 5672]}, 503)
    assert ctl("check_port_listener", "9").err == (
        "Error: No listener for port 9 is active on node gateway@here. "
        "Found listeners that use the following ports: 5672, 15672\n"
    )


@pytest.mark.parametrize(("is_running", "code"), [(True, 0), (False, 69)])
def test_check_running(ctl: Ctl, api: FakeApi, is_running: bool, code: int) -> None:
    api.answer("GET nodes/gateway%40here", {**NODE, "running": is_running})
    assert ctl("check_running").code == code


def overview_with(*ports: int) -> dict[str, object]:
    heard = [{"ip_address": "0.0.0.0", "port": port, "protocol": "amqp"} for port in ports]
    return {"node": "gateway@here", "listeners": heard, "rabbitmq_version": "3.10.8"}


def test_every_listener_is_connected_to(ctl: Ctl, api: FakeApi) -> None:
    with socket.create_server(("127.0.0.1", 0)) as open_port, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        heard, closed = open_port.getsockname()[1], bound.getsockname()[1]
        api.answer("GET overview", overview_with(heard))
        assert (
            ctl("check_port_connectivity", "-q").out
            == f"Successfully connected to ports {heard} on node gateway@here.\n"
        )
        api.answer("GET overview", overview_with(heard, closed))
        ended = ctl("check_port_connectivity", "-q")
    assert (ended.code, ended.err) == (69, f"Error: Connection to ports {closed} of node gateway@here failed\n")


def test_startup_is_awaited(ctl: Ctl, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            api.answer("GET whoami", {"name": "guest"})

    monkeypatch.setattr("gateway.cli.ctl.health.time.sleep", sleep)
    assert ctl("await_startup").code == 0
    assert len(waits) == 3


def test_startup_is_not_awaited_forever(ctl: Ctl) -> None:
    assert ctl("await_startup", "--timeout", "0.1").code == 69


def test_a_wrong_password_does_not_get_better_by_waiting(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET whoami", {"reason": "Login failed"}, 401)
    assert ctl("await_startup").code == 77


def test_status_has_the_sections_of_rabbitmqctl(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET overview", overview_with(5672) | {"product_name": "gateway", "product_version": "0.1"})
    api.answer("GET nodes/gateway%40here", NODE)
    printed = ctl("status").out
    for line in (
        "Status of node gateway@here ...",
        "Uptime (seconds): 61",
        "gateway version: 0.1",
        "RabbitMQ version: 3.10.8",
        " * memory alarm on node gateway@here",
        "Total memory used: 2.0 gb",
        "Free disk space: 3.0 gb",
        "Total: 3, limit: 100",
        "Virtual host count: 2",
        "Interface: 0.0.0.0, port: 5672, protocol: amqp, purpose: AMQP 0-9-1",
    ):
        assert line in printed.splitlines()
    status = json.loads(ctl("status", "--formatter=json").out)
    assert (status["uptime"], status["alarms"]) == (61, ["memory alarm on node gateway@here"])
    assert status["totals"] == {"connection_count": 0, "queue_count": 0, "virtual_host_count": 2}


def test_listeners_and_version_of_the_server(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET overview", overview_with(5672))
    assert ctl("server_version", "-q").out == "3.10.8\n"
    assert ctl("listeners", "-q").out == "Interface: 0.0.0.0, port: 5672, protocol: amqp, purpose: AMQP 0-9-1\n"
    assert ctl("listeners", "-s", "--formatter=csv").out.splitlines()[1] == '"0.0.0.0","5672","amqp","AMQP 0-9-1"'
