"""The rabbitmqadmin script of RabbitMQ 3, against a gateway started for these tests."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pika
import pytest

from tests.interop.amqp_clients.pika_client import parameters
from tests.interop.broker import BROKER_URL, MANAGEMENT_URL, Broker
from tests.interop.gateways import running_gateway
from tests.interop.tools import program, run
from tests.ports import free_port

Admin = Callable[..., str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, int]]:
    """Run a gateway; return it with the port of its management API. GATEWAY_TEST_MANAGEMENT_URL names another one."""
    if MANAGEMENT_URL is not None:
        assert BROKER_URL is not None, "GATEWAY_TEST_AMQP_URL must name the same broker"
        yield Broker.from_url(BROKER_URL), urlsplit(MANAGEMENT_URL).port or 15672
        return
    port = free_port()
    with running_gateway(tmp_path_factory.mktemp("managed"), f"management.port={port}") as broker:
        yield broker, port


@pytest.fixture
def admin(server: tuple[Broker, int]) -> Admin:
    """Run rabbitmqadmin, which must succeed; return its output."""

    def rabbitmqadmin(*words: str) -> str:
        command = [sys.executable, program("rabbitmqadmin"), "--host=127.0.0.1", f"--port={server[1]}", *words]
        done = run(command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.decode()

    return rabbitmqadmin


def listed(admin: Admin, *words: str) -> list[dict[str, Any]]:
    """Return a listing as JSON."""
    entries: list[dict[str, Any]] = json.loads(admin("--format=raw_json", "list", *words))
    return entries


def named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the entry with this name."""
    (entry,) = [entry for entry in entries if entry["name"] == name]
    return entry


def test_a_queue_from_declaration_to_deletion(admin: Admin, name: str) -> None:
    assert admin("declare", "queue", f"name={name}", "durable=true", 'arguments={"x-max-length":5}') == (
        "queue declared\n"
    )
    assert named(listed(admin, "queues"), name)["arguments"] == {"x-max-length": 5}
    assert admin("publish", f"routing_key={name}", "payload=hello") == "Message published\n"
    assert admin("publish", f"routing_key={name}-none", "payload=hello") == "Message published but NOT routed\n"
    (got,) = json.loads(admin("--format=raw_json", "get", f"queue={name}", "ackmode=ack_requeue_true"))
    assert (got["payload"], got["redelivered"], got["message_count"]) == ("hello", False, 0)
    assert "hello" in admin("get", f"queue={name}")
    assert admin("purge", "queue", f"name={name}") == "queue purged\n"
    assert named(listed(admin, "queues"), name)["messages"] == 0
    assert admin("delete", "queue", f"name={name}") == "queue deleted\n"
    assert name not in admin("list", "queues")


def test_rabbitmqadmin_declares_exchanges_and_bindings(admin: Admin, name: str) -> None:
    assert admin("declare", "exchange", f"name={name}", "type=topic") == "exchange declared\n"
    admin("declare", "queue", f"name={name}")
    binding = (f"source={name}", f"destination={name}", "destination_type=queue")
    assert admin("declare", "binding", *binding, "routing_key=a.*") == "binding declared\n"
    (bound,) = [each for each in listed(admin, "bindings") if each["source"] == name]
    assert (bound["destination"], bound["routing_key"]) == (name, "a.*")
    assert admin("publish", f"exchange={name}", "routing_key=a.b", "payload=x") == "Message published\n"
    deleted = admin("delete", "binding", *binding, f"properties_key={bound['properties_key']}")
    assert deleted == "binding deleted\n"
    assert [each for each in listed(admin, "bindings") if each["source"] == name] == []
    assert admin("delete", "exchange", f"name={name}") == "exchange deleted\n"


def test_virtual_hosts_users_and_permissions(admin: Admin, name: str) -> None:
    admin("declare", "vhost", f"name={name}")
    admin("declare", "user", f"name={name}", f"password={name}", "tags=management")
    admin("declare", "permission", f"vhost={name}", f"user={name}", "configure=.*", "write=.*", "read=.*")
    own = (f"--username={name}", f"--password={name}", f"--vhost={name}")
    admin(*own, "declare", "queue", "name=q")
    assert [queue["name"] for queue in json.loads(admin(*own, "--format=raw_json", "list", "queues"))] == ["q"]
    assert named(listed(admin, "users"), name)["tags"] == ["management"]
    assert {each["user"] for each in listed(admin, "permissions") if each["vhost"] == name} == {"guest", name}
    admin("delete", "permission", f"vhost={name}", f"user={name}")
    admin("delete", "user", f"name={name}")
    admin("delete", "vhost", f"name={name}")
    assert name not in admin("list", "vhosts") + admin("list", "users") + admin("list", "permissions")


def test_rabbitmqadmin_sets_policies_and_parameters(admin: Admin, name: str) -> None:
    admin("declare", "queue", f"name={name}")
    admin("declare", "policy", f"name={name}", f"pattern=^{name}$", 'definition={"max-length":7}', "apply-to=queues")
    admin("declare", "operator_policy", f"name={name}", f"pattern=^{name}$", 'definition={"max-length":3}')
    queue = named(listed(admin, "queues"), name)
    assert (queue["policy"], queue["effective_policy_definition"]) == (name, {"max-length": 3})
    assert named(listed(admin, "policies"), name)["definition"] == {"max-length": 7}
    assert named(listed(admin, "operator_policies"), name)["definition"] == {"max-length": 3}
    admin("declare", "parameter", "component=vhost-limits", "name=limits", 'value={"max-queues":1000}')
    assert {each["component"] for each in listed(admin, "parameters")} == {"vhost-limits", "operator_policy"}
    admin("delete", "parameter", "component=vhost-limits", "name=limits")
    admin("delete", "policy", f"name={name}")
    admin("delete", "operator_policy", f"name={name}")
    admin("delete", "queue", f"name={name}")


def test_rabbitmqadmin_sets_limits(admin: Admin, name: str) -> None:
    admin("declare", "vhost", f"name={name}")
    admin("declare", "vhost_limit", f"vhost={name}", "name=max-queues", "value=3")
    assert [each for each in listed(admin, "vhost_limits") if each["vhost"] == name] == [
        {"vhost": name, "value": {"max-queues": 3}}
    ]
    admin("delete", "vhost_limit", f"vhost={name}", "name=max-queues")
    admin("delete", "vhost", f"name={name}")


def test_connections_are_listed_and_closed(admin: Admin, server: tuple[Broker, int]) -> None:
    connection = pika.BlockingConnection(parameters(server[0], client_properties={"connection_name": "listed"}))
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_consume(queue, lambda *delivery: None)
    (shown,) = listed(admin, "connections")
    assert (shown["user"], shown["channels"], shown["user_provided_name"]) == ("guest", 1, "listed")
    assert [each["number"] for each in listed(admin, "channels")] == [1]
    assert [each["queue"]["name"] for each in listed(admin, "consumers")] == [queue]
    admin("close", "connection", f"name={shown['name']}")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(5)
    assert closed.value.reply_code == 320


def test_definitions_are_exported_and_imported(admin: Admin, name: str, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    admin("declare", "queue", f"name={name}", "durable=true")
    assert admin("export", str(file)).startswith("Exported definitions")
    assert name in {queue["name"] for queue in json.loads(file.read_text())["queues"]}
    admin("delete", "queue", f"name={name}")
    assert admin("import", str(file)).startswith("Uploaded definitions")
    assert named(listed(admin, "queues"), name)["durable"] is True
    admin("delete", "queue", f"name={name}")


def test_rabbitmqadmin_shows_the_overview(admin: Admin) -> None:
    assert "3.10.8" in admin("show", "overview")
    assert "disc" in admin("list", "nodes")


# The whole list of verbs


def test_every_listing_is_answered(admin: Admin) -> None:
    kinds = re.findall(r"^  (list|show) (\w+)", admin("help", "subcommands"), re.MULTILINE)
    assert len(kinds) >= 15
    for verb, kind in kinds:
        assert isinstance(json.loads(admin("--format=raw_json", verb, kind)), list), kind
        admin(verb, kind)  # as a table


def test_every_other_verb_is_used_in_these_tests(admin: Admin) -> None:
    used = re.findall(r'"(\w+)", "(\w+)"', Path(__file__).read_text(encoding="utf-8"))
    verbs = re.findall(r"^  (declare|delete|close|purge) (\w+)", admin("help", "subcommands"), re.MULTILINE)
    assert sorted(set(verbs) - set(used)) == []
