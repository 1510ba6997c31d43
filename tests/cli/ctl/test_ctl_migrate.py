"""gatewayctl migrate check: what a RabbitMQ and a mosquitto.conf use, and what the gateway has of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.access.passwords import hash_password
from tests.cli.ctl.fake_api import FakeApi, fake_api
from tests.cli.ctl.running import Ctl

SHA256 = "rabbit_password_hashing_sha256"
PLAIN: dict[str, Any] = {
    "users": [{"name": "ann", "password_hash": hash_password("secret", SHA256), "hashing_algorithm": SHA256}],
    "vhosts": [{"name": "/"}],
    "permissions": [{"user": "ann", "vhost": "/", "configure": "^ann", "write": ".*", "read": ".*"}],
    "exchanges": [{"name": "e", "vhost": "/", "type": "topic"}],
    "queues": [{"name": name, "vhost": "/", "type": "classic", "arguments": {"x-max-length": 5}} for name in "ab"],
    "bindings": [{"source": "e", "vhost": "/", "destination": "a", "destination_type": "queue"}],
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
        assert ctl("migrate", "check", f"http://ops:s3cret@{address}").code == 0
        assert ctl("migrate", "check", f"http://{address}").code == 0
        assert [received.credentials for received in other.received if received.target.endswith("/overview")] == [
            "ops:s3cret",
            "guest:guest",
        ]
    assert rabbit.received == []


def test_the_login_of_the_command_line_is_used_at_the_url_and_that_of_the_environment_is_not(
    rabbit: FakeApi, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAYCTL_USERNAME", "own")
    monkeypatch.setenv("GATEWAYCTL_TOKEN", "own-token")
    with fake_api() as other:
        other.answers = rabbit.answers
        address = other.url.removeprefix("http://")
        assert ctl("migrate", "check", f"http://{address}", "--username", "x", "--password", "y").code == 0
        assert ctl("migrate", "check", f"http://ops:s3cret@{address}", "--password", "y").code == 0
        assert {received.credentials for received in other.received} == {"x:y", "ops:y"}


@pytest.mark.parametrize(
    ("category", "entry", "expected"),
    [
        ("users", {"name": "u", "hashing_algorithm": "own"}, ("user", "u", "refused: hashing_algorithm: must be")),
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
            {
                "component": "operator_policy",
                "name": "o",
                "vhost": "/",
                "value": {"pattern": "", "definition": {"ha-mode": "all"}},
            },
            ("operator policy", "o in /", "mirroring is accepted"),
        ),
        (
            "parameters",
            {"component": "own", "name": "x", "vhost": "/", "value": {}},
            ("parameter", "own", "kept, without effect"),
        ),
        (
            "parameters",
            {
                "component": "shovel",
                "name": "s",
                "vhost": "/",
                "value": {"src-protocol": "amqp10", "src-uri": "amqp://", "src-address": "a", "dest-uri": "amqp://"},
            },
            ("parameter", "s in /", "refused: "),
        ),
        ("global_parameters", {"name": "own", "value": 1}, ("global parameter", "own", "kept, without effect")),
        (
            "queues",
            {"name": "q", "vhost": "/", "auto_delete": True, "arguments": {"x-queue-type": "quorum"}},
            ("queue of type quorum", "q in /", "refused: invalid property 'auto-delete'"),
        ),
        (
            "bindings",
            {"source": "amq.headers", "vhost": "/", "destination": "a", "arguments": {"x-match": "some"}},
            ("binding", "amq.headers to a in /", "refused: "),
        ),
        (
            "queues",
            {"name": "q", "vhost": "/", "type": "foo"},
            ("queue of type foo", "q in /", "becomes a queue of type classic: there is no type foo"),
        ),
        (
            "queues",
            {"name": "q", "vhost": "/", "type": "mqtt_qos0"},
            ("queue of type mqtt_qos0", "q in /", "becomes a queue of type classic; leave it out: each MQTT session"),
        ),
        (
            "queues",
            {"name": "amq.gen-a", "vhost": "/", "type": "classic"},
            ("queue of type classic", "amq.gen-a in /", "left out: the client of a queue with a reserved name"),
        ),
        (
            "exchanges",
            {"name": "amq.own", "vhost": "/", "type": "direct"},
            ("exchange", "amq.own in /", "left out: its name is reserved"),
        ),
        (
            "exchanges",
            {"name": "h", "vhost": "/", "type": "x-consistent-hash"},
            ("exchange", "x-consistent-hash", "another hash"),
        ),
        (
            "exchanges",
            {"name": "h", "vhost": "/", "type": "x-delayed-message", "arguments": {"x-delayed-type": "x-modulus-hash"}},
            ("exchange", "x-modulus-hash", "another hash"),
        ),
        (
            "bindings",
            {"source": "none", "vhost": "/", "destination": "a"},
            ("binding", "exchange none in /", "left out: an import makes no such end"),
        ),
        (
            "bindings",
            {"source": "e", "vhost": "/", "destination": "none", "destination_type": "queue"},
            ("binding", "queue none in /", "left out"),
        ),
        (
            "bindings",
            {"source": "e", "vhost": "/", "destination": "a", "destination_type": "exchange"},
            ("binding", "exchange a in /", "left out"),
        ),
        ("bindings", {"vhost": "/"}, ("binding", "bindings[1] in /", "refused: source: is missing")),
        ("users", {"tags": []}, ("user", "users[1]", "refused: name: is missing")),
        (
            "parameters",
            {
                "component": "operator_policy",
                "name": "o",
                "vhost": "/",
                "value": {"pattern": "", "definition": [["ha-mode", "all"]]},
            },
            ("operator policy", "o in /", "mirroring is accepted"),
        ),
        ("vhosts", {"name": "v", "default_queue_type": "other"}, ("virtual host", "v", "refused: ")),
        ("vhosts", {"name": "v", "limits": {"max-topics": 1}}, ("virtual host", "v", "refused: ")),
        (
            "parameters",
            {"component": "vhost-limits", "name": "limits", "vhost": "/", "value": {"max-queues": "many"}},
            ("parameter", "limits in /", "refused: "),
        ),
        ("users", {"name": "u", "limits": {"max-channels": "many"}}, ("user", "u", "refused: ")),
        (
            "exchanges",
            {"name": "d", "vhost": "/", "type": "x-delayed-message", "arguments": {}},
            ("exchange", "d in /", "refused: "),
        ),
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
    exchanges = [*PLAIN["exchanges"], {"name": "own", "vhost": "/", "type": "x-own"}]
    rabbit.answer("GET definitions", {**PLAIN, "exchanges": exchanges})
    result = ctl("migrate", "check", "--formatter=json")
    assert (result.code, result.err) == (3, "Error: missing: 6, different: 3\n")
    rows = json.loads(result.out)
    assert [row["verdict"] for row in rows] == ["missing"] * 6 + ["differs"] * 3 + ["same"] * (len(rows) - 9)
    assert [(row["kind"], row["name"], row["count"]) for row in rows[:9]] == [
        ("plugin", "acme_own", 1),
        ("plugin", "rabbitmq_amqp1_0", 1),
        ("connection", "AMQP 1-0", 1),
        ("login mechanism", "RABBIT-CR-DEMO", 1),
        ("connection", "stream", 2),
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


def test_a_rabbitmq_conf_is_no_mosquitto_conf(ctl: Ctl, tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.conf"
    file.write_text("# ports\nlisteners.tcp.default = 5672\n")
    result = ctl("migrate", "check", str(file))
    assert (result.code, result.err.count("\n")) == (65, 1)
    assert "gateway migrate converts a rabbitmq.conf" in result.err


def test_a_file_of_definitions_is_compared_as_those_of_a_running_broker(ctl: Ctl, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(PLAIN))
    assert ctl("migrate", "check", str(file)).code == 0
    file.write_text(json.dumps({**PLAIN, "queues": [{"name": "q", "vhost": "/", "type": "foo"}]}))
    result = ctl("migrate", "check", str(file), "--formatter=json")
    assert (result.code, result.err) == (2, "Error: different: 2\n")
    assert [row["name"] for row in differing(result.out)] == ["q in /", "queue a in /"]


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000])
def test_a_file_without_definitions_is_one_line(content: str, ctl: Ctl, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(content)
    result = ctl("migrate", "check", str(file))
    assert (result.code, result.err.count("\n")) == (65, 1)


def test_a_file_that_cannot_be_read_is_one_line(ctl: Ctl, tmp_path: Path) -> None:
    assert ctl("migrate", "check", str(tmp_path / "no.conf")).code == 65
    (tmp_path / "binary.conf").write_bytes(b"\xff\xfe")
    result = ctl("migrate", "check", str(tmp_path / "binary.conf"))
    assert (result.code, result.err.count("\n")) == (65, 1)


@pytest.mark.parametrize("protocol", ["AMQP 0-8", "AMQP 1-0", "stream", "CoAP", "MQTT 6", "STOMP 2.0"])
def test_a_protocol_that_the_gateway_does_not_have_is_missing(protocol: str, rabbit: FakeApi, ctl: Ctl) -> None:
    rabbit.answer("GET connections", [{"protocol": protocol}])
    result = ctl("migrate", "check", "--formatter=json")
    assert result.code == 3
    assert [(row["kind"], row["name"], row["verdict"]) for row in differing(result.out)] == [
        ("connection", protocol, "missing")
    ]


@pytest.mark.parametrize(
    "protocol",
    ["AMQP 0-9-1", "Direct 0-9-1", "MQTT 3-1-1", "MQTT 3.1.1", "MQTT 3-1-0", "MQTT 5-0", "Web MQTT 5-0", "STOMP 1.2"],
)
def test_a_protocol_that_the_gateway_has_is_the_same(protocol: str, rabbit: FakeApi, ctl: Ctl) -> None:
    rabbit.answer("GET connections", [{"protocol": protocol}])
    assert ctl("migrate", "check").code == 0


def test_a_connection_before_its_login_is_no_verdict(rabbit: FakeApi, ctl: Ctl) -> None:
    rabbit.answer("GET connections", [{"pid": "1"}])
    (row,) = differing(ctl("migrate", "check", "--formatter=json").out)
    assert row["note"] == "has not logged in yet: run the check again"


def test_streams_of_both_lists_are_counted_once(rabbit: FakeApi, ctl: Ctl) -> None:
    rabbit.answer("GET connections", [{"protocol": "stream"}])
    rabbit.answer("GET stream/connections", [{}])
    (row,) = differing(ctl("migrate", "check", "--formatter=json").out)
    assert (row["name"], row["count"]) == ("stream", 1)


@pytest.mark.parametrize(
    ("feature", "verdict"),
    [
        ("classic_queue_mirroring", "differs"),
        ("amqp_address_v1", "missing"),
        ("transient_nonexcl_queues", "same"),
        ("of_a_later_version", "differs"),
    ],
)
def test_a_deprecated_feature_in_use_has_its_own_verdict(feature: str, verdict: str, rabbit: FakeApi, ctl: Ctl) -> None:
    rabbit.answer("GET deprecated-features/used", [{"name": feature}])
    rows = json.loads(ctl("migrate", "check", "--formatter=json").out)
    assert [(row["name"], row["verdict"]) for row in rows if row["kind"] == "deprecated feature"] == [
        (feature, verdict)
    ]


@pytest.mark.parametrize("path", ["feature-flags", "deprecated-features/used", "stream/connections"])
def test_a_list_that_fails_ends_the_check(path: str, rabbit: FakeApi, ctl: Ctl) -> None:
    rabbit.answer(f"GET {path}", {"error": "internal", "reason": "out of memory"}, 500)
    result = ctl("migrate", "check")
    assert result.code not in (0, 2, 3)
    assert "out of memory" in result.err


def test_an_unknown_type_behind_delays_is_missing(rabbit: FakeApi, ctl: Ctl) -> None:
    delayed = {"name": "d", "vhost": "/", "type": "x-delayed-message", "arguments": {"x-delayed-type": "x-own"}}
    rabbit.answer("GET definitions", {**PLAIN, "exchanges": [delayed, *PLAIN["exchanges"]]})
    result = ctl("migrate", "check", "--formatter=json")
    assert result.code == 3
    assert [(row["kind"], row["name"], row["verdict"]) for row in differing(result.out)] == [
        ("exchange", "x-own", "missing")
    ]


def test_the_default_queue_type_of_the_broker_becomes_a_setting(rabbit: FakeApi, ctl: Ctl) -> None:
    rabbit.answer("GET overview", {"rabbitmq_version": "4.1.0", "default_queue_type": "quorum"})
    (row,) = differing(ctl("migrate", "check", "--formatter=json").out)
    assert (row["kind"], row["note"]) == ("default queue type", 'set queues.default_queue_type = "quorum"')


def test_permissions_of_a_user_that_is_refused_are_checked_all_the_same(rabbit: FakeApi, ctl: Ctl) -> None:
    users = [{"name": "ann", "hashing_algorithm": "own"}]
    rabbit.answer("GET definitions", {**PLAIN, "users": users})
    assert [row["kind"] for row in differing(ctl("migrate", "check", "--formatter=json").out)] == ["user"]


def test_a_queue_of_an_unknown_type_becomes_one_of_the_default_type_of_its_virtual_host(
    rabbit: FakeApi, ctl: Ctl
) -> None:
    vhosts = [*PLAIN["vhosts"], {"name": "v", "metadata": {"default_queue_type": "quorum"}}]
    queue = {"name": "q", "vhost": "v", "type": "foo", "durable": True}
    rabbit.answer("GET definitions", {**PLAIN, "vhosts": vhosts, "queues": [*PLAIN["queues"], queue]})
    (row,) = differing(ctl("migrate", "check", "--formatter=json").out)
    assert row["note"] == "becomes a queue of type quorum: there is no type foo"


def test_the_argument_of_a_queue_is_its_type(rabbit: FakeApi, ctl: Ctl) -> None:
    queue = {"name": "q", "vhost": "/", "type": "foo", "arguments": {"x-queue-type": "quorum"}}
    rabbit.answer("GET definitions", {**PLAIN, "queues": [*PLAIN["queues"], queue]})
    result = ctl("migrate", "check", "--formatter=json")
    assert result.code == 0
    assert "queue of type quorum" in {row["kind"] for row in json.loads(result.out)}


def test_bindings_of_what_an_import_leaves_out_are_one_row_for_each_end(rabbit: FakeApi, ctl: Ctl) -> None:
    exchanges = [*PLAIN["exchanges"], {"name": "own", "vhost": "/", "type": "x-own"}]
    keys = [{"source": "own", "vhost": "/", "destination": "a", "routing_key": key} for key in "xyz"]
    implicit = {"source": "", "vhost": "/", "destination": "a", "routing_key": "a"}
    ended = {"source": "amq.topic", "vhost": "/", "destination": "e", "destination_type": "exchange"}
    bindings = [*PLAIN["bindings"], *keys, implicit, ended]
    rabbit.answer("GET definitions", {**PLAIN, "exchanges": exchanges, "bindings": bindings})
    rows = json.loads(ctl("migrate", "check", "--formatter=json").out)
    found = [(row["verdict"], row["name"], row["count"]) for row in rows if row["kind"] == "binding"]
    assert found == [("differs", "exchange own in /", 3), ("same", "", 3)]
