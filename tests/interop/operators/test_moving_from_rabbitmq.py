"""docs/moving-from-rabbitmq.md: its steps move a RabbitMQ with queues, users, policies and messages."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pika
import pytest

from tests.interop.gateways import gateway_at
from tests.interop.pages.blocks import ROOT, blocks
from tests.interop.rabbitmq_server import RabbitServer, running_rabbitmq
from tests.management_client import get
from tests.running import Gateway
from tests.waiting import wait_until

QUEUES: Final = [f"orders-{number}" for number in range(50)]
MESSAGES: Final = 10_000
USERS: Final = ("ann", "bob", "eve")

#: All commands of the page together: ten minutes are the promise.
LIMIT_S: Final = 600


def fill(rabbit: RabbitServer) -> None:
    """Give a RabbitMQ queues with bindings, users, a policy, and messages."""
    for user in USERS:
        rabbit.request("PUT", f"users/{user}", {"password": f"{user}-secret", "tags": "management"})
        permissions = {"configure": f"^{user}-", "write": ".*", "read": ".*"}
        rabbit.request("PUT", f"permissions/%2F/{user}", permissions)
    policy = {"pattern": "^orders-", "definition": {"max-length": 100_000}, "apply-to": "queues"}
    rabbit.request("PUT", "policies/%2F/limit", policy)
    connection = pika.BlockingConnection(pika.URLParameters(rabbit.uri))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.exchange_declare("orders", "direct", durable=True)
    for number, queue in enumerate(QUEUES):
        types = {"x-queue-type": "quorum"} if number % 10 == 0 else {}
        channel.queue_declare(queue, durable=True, arguments=types)
        channel.queue_bind(queue, "orders", queue)
    persistent = pika.BasicProperties(delivery_mode=2)
    sending = connection.channel()  # without confirms for each: the count shows that all arrived
    for number in range(MESSAGES):
        sending.basic_publish("orders", QUEUES[number % len(QUEUES)], b"%d" % number, persistent)
    wait_until(lambda: sum(depth(channel, queue) for queue in QUEUES) == MESSAGES, "not all published", timeout_s=60)
    connection.close()
    # RabbitMQ's statistics follow after some seconds
    wait_until(lambda: rabbit.request("GET", "overview")["queue_totals"].get("messages") == MESSAGES, timeout_s=60)


def depth(channel: pika.adapters.blocking_connection.BlockingChannel, queue: str) -> int:
    """Return the number of ready messages."""
    count: int = channel.queue_declare(queue, passive=True).method.message_count
    return count


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    with running_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as rabbit:
        fill(rabbit)
        yield rabbit


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = gateway_at(tmp_path_factory.mktemp("gateway")).start()
    yield gateway
    gateway.stop()


class Operator:
    """Pastes the commands of the page, with the addresses and the login of the brokers that run."""

    def __init__(self, rabbit: RabbitServer, gateway: Gateway, directory: Path) -> None:
        self._directory = directory
        advanced = directory / "advanced.config"
        advanced.write_text("[].\n")
        self._names = {
            "user:password@rabbit.example.org:15672": f"guest:guest@{rabbit.api_host}",
            "user:password@rabbit.example.org": f"guest:guest@127.0.0.1:{rabbit.port}",
            "/etc/rabbitmq/rabbitmq.conf": str(rabbit.directory / "rabbitmq.conf"),
            "/etc/rabbitmq/advanced.config": str(advanced),
        }
        host, port = gateway.addresses["management"]
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(directory),
            "GATEWAYCTL_URL": f"http://{host}:{port}",
        }

    def paste(self, commands: str, *, code: int = 0) -> str:
        """Run commands and return what they print; the exit code is that of the last one."""
        for name, real in self._names.items():
            commands = commands.replace(name, real)
        ended = subprocess.run(
            ["bash", "-c", commands],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert ended.returncode == code, f"{commands}\n{ended.stdout}{ended.stderr}"
        return ended.stdout


@pytest.mark.timeout(LIMIT_S + 120)  # with the start of RabbitMQ
def test_the_steps_of_the_page_move_everything(
    rabbit: RabbitServer, gateway: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = time.monotonic()
    operator = Operator(rabbit, gateway, tmp_path)
    page = ROOT / "docs/moving-from-rabbitmq.md"
    check, convert, definitions, shovels, end = (block.text for block in blocks(page) if block.language == "sh")

    report = operator.paste(check, code=2)  # the plugin for consistent hashes has another hash
    assert "differs\tplugin\trabbitmq_consistent_hash_exchange\t1\t" in report
    assert "same\tqueue of type classic\t\t45" in report
    assert f"same\tmessage\t\t{MESSAGES}" in report
    assert "\nmissing" not in report

    operator.paste(convert)
    assert "management" in (tmp_path / "gateway.toml").read_text()

    operator.paste(definitions)
    assert json.loads((tmp_path / "definitions.json").read_text())["policies"][0]["name"] == "limit"
    operator.paste("gatewayctl definitions diff definitions.json")
    log_in_with_the_old_passwords(gateway)
    assert {queue["name"]: queue["type"] for queue in get(gateway, "queues")} == {
        queue: "quorum" if number % 10 == 0 else "classic" for number, queue in enumerate(QUEUES)
    }

    assert "move-orders-49" in operator.paste(shovels)
    wait_until(lambda: bodies_waiting(gateway) == MESSAGES, lambda: str(bodies_waiting(gateway)), timeout_s=300)
    operator.paste(end)
    moved_s = time.monotonic() - begin
    with capsys.disabled():
        print(f"\nRabbitMQ is moved in {moved_s:.0f} s")
    assert moved_s < LIMIT_S
    assert get(gateway, "shovels") == []
    there = pika.BlockingConnection(pika.URLParameters(rabbit.uri)).channel()
    assert sum(depth(there, queue) for queue in QUEUES) == 0
    assert received(gateway) == set(range(MESSAGES))


def log_in_with_the_old_passwords(gateway: Gateway) -> None:
    """Open a connection of AMQP as each user that RabbitMQ had."""
    host, port = gateway.addresses["amqp"]
    for user in USERS:
        login = pika.PlainCredentials(user, f"{user}-secret")
        pika.BlockingConnection(pika.ConnectionParameters(host, port, credentials=login)).close()


def bodies_waiting(gateway: Gateway) -> int:
    """Return the number of messages in the queues that were moved."""
    return sum(queue["messages"] for queue in get(gateway, "queues?columns=messages"))


def received(gateway: Gateway) -> set[int]:
    """Consume all messages; each was moved once, because nothing was killed."""
    host, port = gateway.addresses["amqp"]
    channel = pika.BlockingConnection(pika.ConnectionParameters(host, port)).channel()
    bodies = []
    for queue in QUEUES:
        for _ in range(depth(channel, queue)):
            body = channel.basic_get(queue, auto_ack=True)[2]
            assert body is not None
            bodies.append(int(body))
    assert len(bodies) == MESSAGES
    return set(bodies)
