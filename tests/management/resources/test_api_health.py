"""Health checks and the node."""

import pytest

from gateway.kernel.alarms import Resource
from tests.management.console import Console

WELL = [
    ("alarms", {"status": "ok"}),
    ("local-alarms", {"status": "ok"}),
    ("virtual-hosts", {"status": "ok"}),
    ("ready-to-serve-clients", {"status": "ok"}),
    ("is-in-service", {"status": "ok"}),
    ("below-node-connection-limit", {"status": "ok"}),
    ("certificate-expiration/1/weeks", {"status": "ok"}),
    ("node-is-quorum-critical", {"status": "ok", "reason": "single node cluster"}),
    ("port-listener/5672", {"status": "ok", "port": 5672}),
    ("protocol-listener/amqp", {"status": "ok", "protocol": "amqp"}),
    ("protocol-listener/amqp091", {"status": "ok", "protocol": "amqp"}),
    ("protocol-listener/http", {"status": "ok", "protocol": "http"}),
    ("protocol-listener/AMQP0-9-1", {"status": "ok", "protocol": "amqp"}),
    ("protocol-listener/management_ui", {"status": "ok", "protocol": "http"}),
]


@pytest.mark.parametrize(("check", "fields"), WELL)
def test_a_check_succeeds(console: Console, check: str, fields: object) -> None:
    assert console.ask("GET", f"/health/checks/{check}").result == (200, fields)


NAMES = [
    ("mqtts", "mqtt/ssl"), ("mqtt%2Fssl", "mqtt/ssl"), ("mqtt%2Btls", "mqtt/ssl"), ("mqtt3.1.1", "mqtt"),
    ("stomp1.2", "stomp"), ("stomp%2Fssl", "stomp/ssl"), ("web-mqtt", "http/web-mqtt"), ("webstomp", "http/web-stomp"),
    ("http%2Fweb-mqtt", "http/web-mqtt"), ("web_stomp%2Ftls", "https/web-stomp"), ("amqps", "amqp/ssl"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "protocol"), NAMES)
def test_a_protocol_has_the_names_that_probes_use(console: Console, name: str, protocol: str) -> None:
    assert console.ask("GET", f"/health/checks/protocol-listener/{name}").json["missing"] == protocol


ILL = [
    ("port-listener/1", {"reason": "No active listener", "missing": 1, "ports": [5672, 15672]}),
    ("protocol-listener/mqtt", {"reason": "No active listener", "missing": "mqtt", "protocols": ["amqp", "http"]}),
]


@pytest.mark.parametrize(("check", "fields"), ILL)
def test_a_missing_listener_is_reported(console: Console, check: str, fields: dict[str, object]) -> None:
    assert console.ask("GET", f"/health/checks/{check}").result == (503, {"status": "failed", **fields})


SENSELESS = [
    ("port-listener/x", "Invalid port"),
    ("certificate-expiration/1/foo", "Time unit not recognised. Supported units: days, weeks, months, years."),
]


@pytest.mark.parametrize(("check", "reason"), SENSELESS)
def test_a_check_with_wrong_parameters_is_refused(console: Console, check: str, reason: str) -> None:
    answer = console.ask("GET", f"/health/checks/{check}")
    assert answer.result == (400, {"error": "bad_request", "reason": reason})


def test_an_active_alarm_is_reported(console: Console) -> None:
    console.gateway.broker.alarms.set(Resource.DISK, True)
    answer = console.ask("GET", "/health/checks/alarms")
    assert answer.status == 503
    assert answer.json["alarms"] == [{"node": "gateway@here", "resource": "disk"}]
    assert console.get("/nodes")[0]["disk_free_alarm"] is True


def test_the_node_has_the_fields_that_exporters_need(console: Console) -> None:
    (node,) = console.get("/nodes")
    asked = (
        "name running uptime mem_used mem_limit mem_alarm disk_free disk_free_limit disk_free_alarm fd_used fd_total "
        "sockets_used sockets_total proc_used proc_total run_queue partitions enabled_plugins"
    )
    assert [name for name in asked.split() if name not in node] == []
    assert (node["name"], node["running"], node["mem_limit"]) == ("gateway@here", True, 2**30)
    assert node["mem_used"] > 10**6
    assert console.get("/nodes/gateway@here?columns=name") == {"name": "gateway@here"}
    assert console.get("/nodes/gateway@here/memory")["memory"]["total"]["rss"] > 10**6
    assert console.ask("GET", "/nodes/other").status == 404


def test_enabled_plugins_name_the_features_of_the_node(console: Console) -> None:
    plugins = console.get("/nodes")[0]["enabled_plugins"]
    assert {"rabbitmq_management", "rabbitmq_shovel", "rabbitmq_tracing"} <= set(plugins)
    assert "rabbitmq_mqtt" not in plugins  # no listener has MQTT here
