"""Verbs for health checks, against a healthy and an unhealthy node."""

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


@pytest.mark.parametrize(("line", "path", "success"), CHECKS, ids=[check[0] for check in CHECKS])
def test_a_successful_check_exits_with_0(ctl: Ctl, api: FakeApi, line: str, path: str, success: str | None) -> None:
    api.answer(f"GET health/checks/{path}", {"status": "ok"})
    result = ctl(*line.split(), "-q")
    assert result.code == 0
    assert result.out == f"{success or 'A listener for protocol amqp is running on node gateway@here.'}\n"


@pytest.mark.parametrize(("line", "path", "success"), CHECKS, ids=[check[0] for check in CHECKS])
def test_a_failed_check_exits_with_69(ctl: Ctl, api: FakeApi, line: str, path: str, success: str | None) -> None:
    api.answer(f"GET health/checks/{path}", {"status": "failed", "reason": "it is so", "ports": [9, 7]}, 503)
    result = ctl(*line.split(), "-q")
    assert (result.code, result.out) == (69, "")
    assert result.err.startswith("Error: ")


def test_a_missing_port_is_reported_with_the_open_ones(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET health/checks/port-listener/9", {"status": "failed", "missing": 9, "ports": [15672, 5672]}, 503)
    assert ctl("check_port_listener", "9").err == (
        "Error: No listener for port 9 is active on node gateway@here. "
        "Found listeners that use the following ports: 5672, 15672\n"
    )


@pytest.mark.parametrize(("is_running", "code"), [(True, 0), (False, 69)])
def test_check_running_fails_if_the_node_is_not_running(ctl: Ctl, api: FakeApi, is_running: bool, code: int) -> None:
    api.answer("GET nodes/gateway%40here", {**NODE, "running": is_running})
    assert ctl("check_running").code == code


def overview_with(*ports: int) -> dict[str, object]:
    listeners = [{"ip_address": "0.0.0.0", "port": port, "protocol": "amqp"} for port in ports]
    return {"node": "gateway@here", "listeners": listeners, "rabbitmq_version": "3.10.8"}


def test_every_listener_is_checked_by_a_connection(ctl: Ctl, api: FakeApi) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as bound_only:
        bound_only.bind(("127.0.0.1", 0))  # bound but not listening, so that connections are refused
        open_port, closed_port = listening.getsockname()[1], bound_only.getsockname()[1]
        api.answer("GET overview", overview_with(open_port))
        assert (
            ctl("check_port_connectivity", "-q").out
            == f"Successfully connected to ports {open_port} on node gateway@here.\n"
        )
        api.answer("GET overview", overview_with(open_port, closed_port))
        result = ctl("check_port_connectivity", "-q")
    assert (result.code, result.err) == (69, f"Error: Connection to ports {closed_port} of node gateway@here failed\n")


def test_await_startup_retries_until_the_broker_runs(ctl: Ctl, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            api.answer("GET whoami", {"name": "guest"})

    monkeypatch.setattr("gateway.cli.ctl.verbs.health.time.sleep", sleep)
    assert ctl("await_startup").code == 0
    assert len(waits) == 3


def test_await_startup_fails_after_the_timeout(ctl: Ctl) -> None:
    assert ctl("await_startup", "--timeout", "0.1").code == 69


def test_await_startup_does_not_retry_after_a_wrong_password(ctl: Ctl, api: FakeApi) -> None:
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


def test_listeners_and_the_version_of_the_server_are_printed(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET overview", overview_with(5672))
    assert ctl("server_version", "-q").out == "3.10.8\n"
    assert ctl("listeners", "-q").out == "Interface: 0.0.0.0, port: 5672, protocol: amqp, purpose: AMQP 0-9-1\n"
    assert ctl("listeners", "-s", "--formatter=csv").out.splitlines()[1] == '"0.0.0.0","5672","amqp","AMQP 0-9-1"'
