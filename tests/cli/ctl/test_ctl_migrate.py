"""gatewayctl migrate check: what a RabbitMQ and a mosquitto.conf use, and what the gateway has of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.ctl.migration.entities import EXCHANGE_TYPES
from gateway.testing import MemoryBroker
from tests.cli.ctl.fake_api import FakeApi, fake_api
from tests.cli.ctl.running import Ctl

PLAIN: dict[str, Any] = {
    "users": [{"name": "ann", "password_hash": "h", "hashing_algorithm": "rabbit_password_hashing_sha256"}],
    "vhosts": [{"name": "/"}],
    "permissions": [{"user": "ann", "vhost": "/", "configure": "^ann", "write": ".*", "read": ".*"}],
    "exchanges": [{"name": "e", "vhost": "/", "type": "topic"}],
    "queues": [{"name": name, "vhost": "/", "type": "classic", "arguments": {"x-max-length": 5}} for name in "ab"],
    "bindings": [{"source": "e", "vhost": "/", "destination": "a"}],
    "policies": [{"name": "p", "vhost": "/", "pattern": "^a", "definition": {"max-length": 1}, "apply-to": "queues"}],
}


@pytest.fixture
def rabbit(api: FakeApi) -> FakeApi:
    """A RabbitMQ without anything that differs."""
    api.answer("GET overview", {"rabbitmq_version": "3.10.8", "queue_totals": {"messages": 7}})
    api.answer("GET nodes", [{"name": "rabbit@a", "enabled_plugins": ["rabbitmq_management"]}])
    api.answer("GET connections", [{"protocol": "AMQP 0-9-1", "auth_mechanism": "PLAIN"}])
    api.answer("GET definitions", PLAIN)
    return api


def differing(found: str) -> list[dict[str, Any]]:
    """Return the rows of the output that are not the same."""
    return [row for row in json.loads(found) if row["verdict"] != "same"]


def test_a_plain_broker_is_the_same(rabbit: FakeApi, ctl: Ctl) -> None:
    result = ctl("migrate", "check", "--formatter=json")
    assert (result.code, result.err) == (0, "")
    rows = {(row["kind"], row["name"]): row["count"] for row in json.loads(result.out)}
    assert rows == {
        ("broker", "RabbitMQ 3.10.8"): 1,
        ("plugin", "rabbitmq_management"): 1,
        ("connection", "AMQP 0-9-1"): 1,
        ("user", ""): 1,
        ("virtual host", ""): 1,
        ("permission", ""): 1,
        ("exchange", "topic"): 1,
        ("queue of type classic", ""): 2,
        ("binding", ""): 1,
        ("policy", ""): 1,
        ("message", ""): 7,
    }
    assert {received.method for received in rabbit.received} == {"GET"}


def test_the_url_may_have_the_login(rabbit: FakeApi, ctl: Ctl) -> None:
    with fake_api() as other:
        other.answers = rabbit.answers
        address = other.url.removeprefix("http://")
        assert ctl("migrate", "check", f"http://ops:s3cret@{address}", "--username", "x").code == 0
        assert ctl("migrate", "check", f"http://{address}", "--username", "x", "--password", "y").code == 0
        assert {received.credentials for received in other.received} == {"ops:s3cret", "guest:guest"}
    assert rabbit.received == []


@pytest.mark.parametrize(
    ("category", "entry", "expected"),
    [
        ("users", {"name": "u", "hashing_algorithm": "own"}, ("user", "u", "the hash own is unknown")),
        (
            "permissions",
            {"user": "ann", "vhost": "/", "configure": "", "write": "(a)\\1", "read": ""},
            ("permission", "ann in /", "refused: "),
        ),
        (
            "queues",
            {"name": "q", "vhost": "/", "type": "quorum", "arguments": {"x-queue-type": "quorum", "x-max-priority": 5}},
            ("queue of type quorum", "q in /", "refused: invalid arg 'x-max-priority'"),
        ),
        (
            "policies",
            {"name": "ha", "vhost": "/", "pattern": "", "definition": {"ha-mode": "all"}, "apply-to": "all"},
            ("policy", "ha in /", "mirroring is accepted, without effect"),
        ),
        (
            "policies",
            {"name": "p2", "vhost": "/", "pattern": "", "definition": {"max-length": -1}, "apply-to": "all"},
            ("policy", "p2 in /", "refused: "),
        ),
        (
            "parameters",
            {"component": "operator_policy", "name": "o", "vhost": "/", "value": {"definition": {"ha-mode": "all"}}},
            ("operator policy", "o in /", "mirroring is accepted"),
        ),
        ("parameters", {"component": "own", "name": "x", "vhost": "/"}, ("parameter", "own", "kept, without effect")),
    ],
)
def test_an_entity_that_differs_has_a_row(
    category: str, entry: dict[str, Any], expected: tuple[str, str, str], rabbit: FakeApi, ctl: Ctl
) -> None:
    rabbit.answer("GET definitions", {**PLAIN, category: [*PLAIN.get(category, []), entry]})
    result = ctl("migrate", "check", "--formatter=json")
    assert (result.code, result.err) == (2, "Error: different: 1\n")
    (row,) = differing(result.out)
    kind, name, note = expected
    assert (row["kind"], row["name"], row["verdict"]) == (kind, name, "differs")
    assert row["note"].startswith(note)


def test_what_is_missing_comes_first_and_decides_on_the_exit_code(rabbit: FakeApi, ctl: Ctl) -> None:
    plugins = ["rabbitmq_amqp1_0", "acme_own", "rabbitmq_sharding", "rabbitmq_peer_discovery_k8s", "rabbitmq_mqtt"]
    rabbit.answer("GET nodes", [{"enabled_plugins": plugins}, {"enabled_plugins": plugins}])
    connections = [{"protocol": "AMQP 1-0"}, {"protocol": "MQTT 5-0", "auth_mechanism": "RABBIT-CR-DEMO"}]
    rabbit.answer("GET connections", connections)
    rabbit.answer("GET stream/connections", [{}, {}])
    exchanges = [{"name": "own", "vhost": "/", "type": "x-own"}]
    rabbit.answer("GET definitions", {**PLAIN, "exchanges": exchanges})
    result = ctl("migrate", "check", "--formatter=json")
    assert (result.code, result.err) == (3, "Error: missing: 6, different: 3\n")
    rows = json.loads(result.out)
    assert [row["verdict"] for row in rows] == ["missing"] * 6 + ["differs"] * 3 + ["same"] * (len(rows) - 9)
    assert [(row["kind"], row["name"], row["count"]) for row in rows[:9]] == [
        ("plugin", "acme_own", 1),
        ("plugin", "rabbitmq_amqp1_0", 1),
        ("connection", "AMQP 1.0", 1),
        ("login mechanism", "RABBIT-CR-DEMO", 1),
        ("connection", "stream protocol", 2),
        ("exchange", "x-own", 1),
        ("node", "a cluster", 2),
        ("plugin", "rabbitmq_peer_discovery_k8s", 1),
        ("plugin", "rabbitmq_sharding", 1),
    ]


def test_a_user_without_the_tag_gets_the_reason(rabbit: FakeApi, ctl: Ctl) -> None:
    rabbit.answer("GET definitions", {"error": "not_authorised", "reason": "Not administrator user"}, 401)
    result = ctl("migrate", "check")
    assert result.code == 77
    assert "Not administrator user" in result.err


def test_a_broker_without_an_answer_is_one_line(ctl: Ctl) -> None:
    result = ctl("migrate", "check", "http://127.0.0.1:1")
    assert result.code == 69
    assert result.err.count("\n") == 1
    assert "no answer from http://127.0.0.1:1" in result.err


def test_a_configuration_of_mosquitto_is_compared_line_by_line(ctl: Ctl, tmp_path: Path) -> None:
    file = tmp_path / "mosquitto.conf"
    file.write_text("listener 1884\nmax_keepalive 100\n")
    assert ctl("migrate", "check", str(file)).code == 0
    file.write_text("listener 1884\npsk_file secret\nunknown_option 1\n")
    result = ctl("migrate", "check", str(file), "--formatter=json")
    assert (result.code, result.err) == (2, "Error: different: 2\n")
    assert [row["note"] for row in differing(result.out)][:1] == ["TLS with pre-shared keys is not supported"]


def test_a_file_that_cannot_be_read_is_one_line(ctl: Ctl, tmp_path: Path) -> None:
    assert ctl("migrate", "check", str(tmp_path / "no.conf")).code == 65
    (tmp_path / "binary.conf").write_bytes(b"\xff\xfe")
    result = ctl("migrate", "check", str(tmp_path / "binary.conf"))
    assert (result.code, result.err.count("\n")) == (65, 1)


def test_all_types_of_exchanges_are_those_of_a_broker() -> None:
    of_plugins = set(MemoryBroker().vhost.exchange_types)
    assert EXCHANGE_TYPES - {"x-delayed-message", "x-message-deduplication"} == of_plugins  # these are the kernel's
