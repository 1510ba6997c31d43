"""gatewayctl against a running broker: a new gateway, or a broker that the environment names.

``GATEWAY_TEST_MANAGEMENT_URL`` (such as ``http://guest:guest@127.0.0.1:15672``) together with ``GATEWAY_TEST_AMQP_URL``
runs the same tests against a RabbitMQ with its management plugin.
"""

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from gateway.cli.ctl.main import main
from tests.cli.ctl.running import Ctl, Result
from tests.interop.amqp_clients.pika_client import parameters
from tests.interop.broker import BROKER_URL, MANAGEMENT_URL, PROJECT, Broker
from tests.interop.gateways import running_gateway
from tests.interop.tools import run
from tests.ports import free_port
from tests.waiting import wait_until

#: RabbitMQ reports new connections and messages every five seconds.
STATISTICS_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class ManagedBroker:
    """A broker and the URL of its management API."""

    amqp: Broker
    url: str


class Succeeding(Protocol):
    """Runs ``gatewayctl``; returns its output."""

    def __call__(self, *arguments: str, fails: tuple[int, str] | None = None) -> str: ...


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedBroker]:
    if MANAGEMENT_URL is not None:
        assert BROKER_URL is not None, "GATEWAY_TEST_AMQP_URL must name the same broker"
        yield ManagedBroker(Broker.from_url(BROKER_URL), MANAGEMENT_URL)
        return
    port = free_port()
    with running_gateway(tmp_path_factory.mktemp("managed"), f"management.port={port}") as broker:
        yield ManagedBroker(broker, f"http://127.0.0.1:{port}")


@pytest.fixture
def ended(managed: ManagedBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ctl:
    """Run ``gatewayctl`` in the test process, which saves the 0.3 s of a start; return its result, success or not."""
    monkeypatch.setenv("GATEWAYCTL_URL", managed.url)

    def call(*arguments: str) -> Result:
        code = main(arguments)
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return call


@pytest.fixture
def ctl(ended: Ctl) -> Succeeding:
    """Run ``gatewayctl`` and return its output; ``fails`` is the expected exit code and error line of a failure."""

    def call(*arguments: str, fails: tuple[int, str] | None = None) -> str:
        result = ended(*arguments)
        code, error = fails or (0, "")
        assert (result.code, result.err) == (code, f"Error: {error}\n" if error else "")
        return result.out

    return call


@pytest.fixture
def channel(managed: ManagedBroker) -> Iterator[BlockingChannel]:
    """Return a channel with confirms; its queues are exclusive or deleted by the test."""
    connection = pika.BlockingConnection(parameters(managed.amqp))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    if connection.is_open:
        connection.close()


@pytest.fixture
def vhost(ctl: Succeeding) -> Iterator[str]:
    """Create a virtual host with permissions for guest."""
    name = f"ctl-{uuid.uuid4().hex[:8]}"
    ctl("add_vhost", name, "--description", "of a test")
    ctl("set_permissions", "-p", name, "guest", ".*", ".*", ".*")
    yield name
    ctl("delete_vhost", name)


@pytest.fixture
def user(ctl: Succeeding) -> Iterator[str]:
    """Create a user with the password ``secret``."""
    name = f"ctl-{uuid.uuid4().hex[:8]}"
    ctl("add_user", name, "secret")
    yield name
    ctl("delete_user", name)


def wait_for_output(read: Callable[[], str], expected: str) -> None:
    """Wait until the output contains ``expected``."""
    wait_until(
        lambda: expected in read(),
        lambda: f"{expected!r} does not come: {read()!r}",
        timeout_s=STATISTICS_TIMEOUT_S,
        interval_s=0.2,
    )


# Policies


@pytest.fixture
def my_pol(ctl: Succeeding) -> Iterator[None]:
    """Clear the policy ``my_pol`` after the test."""
    yield
    ctl("clear_policy", "my-pol")


@pytest.mark.usefixtures("my_pol")
def test_r71_a_policy_limits_a_queue_to_a_mebibyte_and_drops_the_oldest(
    ctl: Succeeding, channel: BlockingChannel
) -> None:
    ctl("set_policy", "my-pol", "^one-meg$", '{"max-length-bytes":1048576}', "--apply-to", "queues")
    channel.queue_declare("one-meg", exclusive=True)
    for letter in b"abcd":
        channel.basic_publish("", "one-meg", bytes([letter]) * 400_000)
    left = [channel.basic_get("one-meg", auto_ack=True)[2] for _ in range(3)]
    assert [body and body[:1] for body in left] == [b"c", b"d", None]


@pytest.mark.usefixtures("my_pol")
def test_r72_a_policy_refuses_the_third_message(ctl: Succeeding, channel: BlockingChannel) -> None:
    definition = '{"max-length":2,"overflow":"reject-publish"}'
    ctl("set_policy", "my-pol", "^two-messages$", definition, "--apply-to", "queues")
    channel.queue_declare("two-messages", exclusive=True)
    channel.basic_publish("", "two-messages", b"1")
    channel.basic_publish("", "two-messages", b"2")
    with pytest.raises(NackError):
        channel.basic_publish("", "two-messages", b"3")


@pytest.mark.usefixtures("my_pol")
def test_r73_queues_are_listed_in_boxes(ctl: Succeeding, channel: BlockingChannel) -> None:
    ctl("set_policy", "my-pol", "^r73$", '{"max-length":2}', "--apply-to", "queues")
    channel.queue_declare("r73", exclusive=True, arguments={"x-max-priority": 5})

    def listed() -> str:
        lines = ctl("list_queues", "name", "durable", "arguments", "policy", "--formatter=pretty_table", "--silent")
        return "\n".join(" ".join(line.split()) for line in lines.splitlines())

    wait_for_output(listed, '│ r73 │ false │ {"x-max-priority",5} │ my-pol │')
    assert "│ name │ durable │ arguments │ policy │" in listed()


def test_policies_are_set_listed_matched_and_cleared(ctl: Succeeding, vhost: str) -> None:
    ctl("set_policy", "-p", vhost, "low", "^q", '{"max-length": 1}', "--priority", "1")
    ctl("set_policy", "-p", vhost, "high", "q", '{"expires":1000000}', "--priority", "2", "--apply-to", "queues")
    ctl("set_operator_policy", "-p", vhost, "op", "^q", '{"max-length":9}', "--apply-to", "queues")
    assert ctl("list_policies", "-p", vhost, "-s").splitlines() == [
        f'{vhost}\thigh\tq\tqueues\t{{"expires":1000000}}\t2',
        f'{vhost}\tlow\t^q\tall\t{{"max-length":1}}\t1',
    ]
    assert ctl("list_operator_policies", "-p", vhost, "-s") == f'{vhost}\top\t^q\tqueues\t{{"max-length":9}}\t0\n'
    matching = ctl("list_policies_that_match", "-p", vhost, "amq.fanout", "--object-type", "exchange", "-s")
    assert matching == ""
    ctl("clear_policy", "-p", vhost, "low")
    ctl("clear_operator_policy", "-p", vhost, "op")
    ctl("clear_policy", "-p", vhost, "low", fails=(69, f"policy 'low' does not exist in vhost '{vhost}'"))
    assert ctl("list_operator_policies", "-p", vhost, "-s") == ""


REFUSED = [
    pytest.param(["(", '{"max-length":1}'], "pattern", id="pattern"),
    pytest.param(["x", '{"nope":1}'], "not recognised policy settings", id="unknown setting"),
    pytest.param(["x", '{"max-length":"a"}'], "is not a valid maximum length", id="value"),
    pytest.param(["x", '{"max-length":1}', "--apply-to", "wrong"], "apply-to 'wrong' unrecognised", id="apply-to"),
]


@pytest.mark.parametrize(("arguments", "reason"), REFUSED)
def test_an_invalid_policy_is_refused_with_the_reason(ended: Ctl, arguments: list[str], reason: str) -> None:
    result = ended("set_policy", "bad", *arguments)
    assert result.code == 69
    assert result.err.startswith("Error: Validation failed: ")
    assert reason in result.err
    assert len(result.err.splitlines()) == 1


def test_a_process_of_its_own_prints_the_same(ctl: Succeeding, vhost: str) -> None:
    words = ("list_permissions", "-p", vhost)
    done = run([sys.executable, "-m", "gateway.cli.ctl", *words], cwd=PROJECT, env=os.environ)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, ctl(*words), b"")
    failed = run(
        [sys.executable, "-m", "gateway.cli.ctl", "list_permissions", "-p", "none"], cwd=PROJECT, env=os.environ
    )
    assert (failed.returncode, failed.stderr) == (65, b"Error: Virtual host 'none' does not exist\n")


# Users, permissions, virtual hosts


def test_a_command_keeps_a_user_s_other_properties(ctl: Succeeding, user: str) -> None:
    ctl("set_user_tags", user, "monitoring", "policymaker")
    ctl("authenticate_user", user, "secret")
    ctl("change_password", user, "other")
    assert f"{user}\t[monitoring, policymaker]" in ctl("list_users").splitlines()
    ctl("authenticate_user", user, "other")
    result = ctl("list_users", "--formatter=json")
    assert {"user": user, "tags": ["monitoring", "policymaker"]} in json.loads(result)


def test_a_user_without_tags_can_be_authenticated_but_not_use_the_management_api(ctl: Succeeding, user: str) -> None:
    assert ctl("authenticate_user", user, "secret", "-q") == "Success\n"
    login = ("--username", user, "--password", "secret")
    ctl("list_queues", *login, "-q", fails=(77, f"the broker refuses user '{user}': Not management user"))


def test_a_cleared_or_wrong_password_does_not_authenticate(ctl: Succeeding, ended: Ctl, user: str) -> None:
    assert ended("authenticate_user", user, "wrong").code == 65
    ctl("clear_password", user)
    assert ended("authenticate_user", user, "secret").code == 65


def test_commands_report_users_that_exist_or_do_not(ctl: Succeeding, user: str) -> None:
    ctl("add_user", user, "x", fails=(70, f'User "{user}" already exists'))
    for verb in (["delete_user"], ["change_password"], ["set_permissions", ".*", ".*", ".*"], ["set_user_tags"]):
        name, *rest = verb
        password = ["x"] if name == "change_password" else []
        ctl(name, "unknown-user", *rest, *password, fails=(67, 'User "unknown-user" does not exist'))


def test_permissions_are_set_listed_and_cleared(ctl: Succeeding, user: str, vhost: str) -> None:
    ctl("set_permissions", "-p", vhost, user, ".*", "^a", "")
    assert f"{user}\t.*\t^a\t" in ctl("list_permissions", "-p", vhost).splitlines()
    assert ctl("list_user_permissions", user, "-s") == f"{vhost}\t.*\t^a\t\n"
    ctl("set_topic_permissions", "-p", vhost, user, "amq.topic", "^x", "^y")
    assert ctl("list_topic_permissions", "-p", vhost, "-s") == f"{user}\tamq.topic\t^x\t^y\n"
    assert ctl("list_user_topic_permissions", user, "-s") == f"{vhost}\tamq.topic\t^x\t^y\n"
    ctl("clear_topic_permissions", "-p", vhost, user)
    ctl("clear_permissions", "-p", vhost, user)
    ctl("clear_permissions", "-p", vhost, user)
    assert ctl("list_user_permissions", user, "-s") == ctl("list_user_topic_permissions", user, "-s") == ""


def test_a_virtual_host_keeps_its_description_while_tracing_is_on(ctl: Succeeding, vhost: str) -> None:
    def listed() -> list[str]:
        return ctl("list_vhosts", "name", "tracing", "description", "tags").splitlines()

    ctl("trace_on", "-p", vhost)
    assert f"{vhost}\ttrue\tof a test\t[]" in listed()
    ctl("set_vhost_tags", vhost, "a", "b")
    ctl("trace_off", "-p", vhost)
    assert f"{vhost}\tfalse\tof a test\t[a, b]" in listed()


@pytest.mark.parametrize(
    "line",
    [
        *("delete_vhost none", "trace_on -p none", "list_queues -p none", "list_permissions -p none"),
        *(
            "set_policy -p none a b {}",
            "clear_policy -p none a",
            "set_vhost_limits -p none {}",
            "purge_queue -p none q",
        ),
        *("list_bindings -p none", "set_permissions -p none guest a b c", "list_parameters -p none"),
    ],
)
def test_a_missing_virtual_host_gives_exit_code_65(ended: Ctl, line: str) -> None:
    result = ended(*line.split())
    assert (result.code, result.err) == (65, "Error: Virtual host 'none' does not exist\n")


def test_limits_are_set_listed_and_cleared(ctl: Succeeding, user: str, vhost: str) -> None:
    ctl("set_vhost_limits", "-p", vhost, '{"max-connections":5}')
    ctl("set_vhost_limits", "-p", vhost, '{"max-queues":2}')
    assert ctl("list_vhost_limits", "-p", vhost, "-s") == '{"max-queues":2}\n'
    assert f'{vhost}\t{{"max-queues":2}}' in ctl("list_vhost_limits", "--global").splitlines()
    ctl("clear_vhost_limits", "-p", vhost)
    assert ctl("list_vhost_limits", "-p", vhost, "-s") == "{}\n"
    ctl("set_user_limits", user, '{"max-connections":5}')
    ctl("set_user_limits", user, '{"max-channels":2}')
    assert json.loads(ctl("list_user_limits", "--user", user, "-s")) == {"max-connections": 5, "max-channels": 2}
    ctl("clear_user_limits", user, "max-connections")
    assert ctl("list_user_limits", "--user", user, "-s") == '{"max-channels":2}\n'
    ctl("clear_user_limits", user, "all")
    assert user not in ctl("list_user_limits", "--global")


# Queues, connections


def test_queues_exchanges_and_bindings_are_listed(ctl: Succeeding, channel: BlockingChannel) -> None:
    name = f"ctl-{uuid.uuid4().hex[:8]}"
    channel.exchange_declare(name, "topic", auto_delete=True)
    channel.queue_declare(name, exclusive=True, arguments={"x-max-length": 5})
    channel.queue_bind(name, name, "a.#", {"k": "v"})
    assert f"{name}\ttopic" in ctl("list_exchanges").splitlines()
    assert f'{name}\texchange\t{name}\tqueue\ta.#\t[{{"k","v"}}]' in ctl("list_bindings").splitlines()
    assert f'{name}\tfalse\ttrue\t[{{"x-max-length",5}}]' in ctl(
        "list_queues", "name", "durable", "exclusive", "arguments"
    )


def test_a_queue_is_purged_and_deleted(ctl: Succeeding, channel: BlockingChannel) -> None:
    name = f"ctl {uuid.uuid4().hex[:8]}/%"
    channel.queue_declare(name, durable=True)
    channel.basic_publish("", name, b"x")
    ctl("delete_queue", name, "--if-empty", fails=(64, f"queue '{name}' in vhost '/' not empty"))
    ctl("purge_queue", name)
    assert channel.queue_declare(name, passive=True).method.message_count == 0
    assert "Queue was successfully deleted with " in ctl("delete_queue", name)
    ctl("delete_queue", name, fails=(64, f"queue '{name}' does not exist in vhost '/'"))
    ctl("purge_queue", name, fails=(69, f"queue '{name}' does not exist in vhost '/'"))


def test_connections_channels_and_consumers_are_listed_and_closed(
    ctl: Succeeding, managed: ManagedBroker, vhost: str
) -> None:
    connection = pika.BlockingConnection(parameters(managed.amqp, virtual_host=vhost))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=7)
    channel.queue_declare("consumed", exclusive=True)
    tag = channel.basic_consume("consumed", lambda *_: None, arguments={"x-priority": 3})
    consumer = ("list_consumers", "-p", vhost, "queue_name", "consumer_tag", "prefetch_count", "arguments")
    wait_for_output(lambda: ctl(*consumer), f'consumed\t{tag}\t7\t[{{"x-priority",3}}]')
    wait_for_output(lambda: ctl("list_connections", "vhost", "user", "state"), f"{vhost}\tguest\trunning")
    wait_for_output(lambda: ctl("list_channels", "vhost", "number", "prefetch_count"), f"{vhost}\t1\t7")
    rows = json.loads(ctl("list_connections", "pid", "vhost", "--formatter=json"))
    [name] = [row["pid"] for row in rows if row["vhost"] == vhost]
    ctl("close_connection", name, "for a test")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(time_limit=10)
    assert closed.value.reply_code == 320
    assert "for a test" in closed.value.reply_text
    ctl("close_connection", "unknown", "why", fails=(69, "connection 'unknown' does not exist"))


def test_all_connections_of_a_virtual_host_are_closed(ctl: Succeeding, managed: ManagedBroker, vhost: str) -> None:
    connections = [pika.BlockingConnection(parameters(managed.amqp, virtual_host=vhost)) for _ in range(2)]
    wait_for_output(lambda: str(ctl("list_connections", "vhost").splitlines().count(vhost)), "2")
    assert ctl("close_all_connections", "-p", vhost, "for a test", "-q") == "Closed 2 connections\n"
    for connection in connections:
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
            connection.process_data_events(time_limit=10)


# Definitions, parameters


def test_exported_definitions_can_be_imported(ctl: Succeeding, vhost: str, tmp_path: Path) -> None:
    ctl("set_policy", "-p", vhost, "p", "^q", '{"max-length":1}', "--apply-to", "queues")
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    ctl("export_definitions", str(whole))
    ctl("export_definitions", "-p", vhost, str(part))
    assert vhost in [each["name"] for each in json.loads(whole.read_text())["vhosts"]]
    assert [each["name"] for each in json.loads(part.read_text())["policies"]] == ["p"]
    ctl("clear_policy", "-p", vhost, "p")
    ctl("import_definitions", str(whole))
    assert ctl("list_policies", "-p", vhost, "-s").split("\t")[1:3] == ["p", "^q"]
    ctl("clear_policy", "-p", vhost, "p")
    ctl("import_definitions", "-p", vhost, str(part))
    assert ctl("list_policies", "-p", vhost, "-s").split("\t")[1:3] == ["p", "^q"]


def test_global_parameters_are_set_listed_and_cleared(ctl: Succeeding) -> None:
    name = f"ctl-{uuid.uuid4().hex[:8]}"
    ctl("set_global_parameter", name, '{"a":[1,"b"]}')
    assert f'{name}\t{{"a":[1,"b"]}}' in ctl("list_global_parameters").splitlines()
    ctl("clear_global_parameter", name)
    ctl("clear_global_parameter", name, fails=(69, f"global parameter '{name}' does not exist"))


# Probes


@pytest.mark.parametrize(
    "line",
    [
        *("ping", "await_startup", "check_running", "check_local_alarms", "check_alarms", "check_virtual_hosts"),
        *("check_protocol_listener amqp", "check_port_connectivity", "status", "listeners", "server_version"),
        *("status --formatter=json", "list_feature_flags", "list_parameters"),
    ],
)
def test_probes_of_a_healthy_broker_succeed(ctl: Succeeding, line: str) -> None:
    ctl(*line.split())


def test_ports_with_and_without_a_listener(ctl: Succeeding, ended: Ctl, managed: ManagedBroker) -> None:
    ctl("check_port_listener", str(managed.amqp.port))
    result = ended("check_port_listener", "9")
    assert result.code == 69
    assert result.err.startswith("Error: No listener for port 9 is active on node ")
    assert ended("check_protocol_listener", "gopher").code == 69
