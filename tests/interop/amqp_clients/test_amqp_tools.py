"""The command line clients of rabbitmq-c: they declare, publish, get, consume and delete."""

import subprocess
from collections.abc import Iterator
from typing import Protocol

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.amqp_clients.pika_client import fetch
from tests.interop.broker import Broker
from tests.interop.tools import program, run


class Tool(Protocol):
    """Runs ``amqp-NAME`` against the broker and checks the exit code."""

    def __call__(self, name: str, *arguments: str, stdin: bytes = b"", exit_code: int = 0) -> str: ...


@pytest.fixture
def amqp(broker: Broker) -> Tool:
    connection = [
        f"--server={broker.host}",
        f"--port={broker.port}",
        f"--vhost={broker.vhost}",
        f"--username={broker.user}",
        f"--password={broker.password}",
    ]

    def call(name: str, *arguments: str, stdin: bytes = b"", exit_code: int = 0) -> str:
        options, command = _split_at_command(arguments)
        ended = run([program(f"amqp-{name}"), *connection, *options, *command], stdin=stdin)
        assert ended.returncode == exit_code, ended.stderr.decode()
        return (ended.stdout if exit_code == 0 else ended.stderr).decode()

    return call


def _split_at_command(arguments: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split options from the command after ``--``, which ``amqp-consume`` runs for every message."""
    if "--" not in arguments:
        return arguments, ()
    border = arguments.index("--")
    return arguments[:border], arguments[border:]


@pytest.fixture
def queue(amqp: Tool, name: str) -> Iterator[str]:
    """Declare a queue by amqp-declare-queue."""
    assert amqp("declare-queue", f"--queue={name}").strip() == name
    yield name
    amqp("delete-queue", f"--queue={name}")


def test_a_published_message_can_be_got(amqp: Tool, queue: str) -> None:
    amqp("publish", f"--routing-key={queue}", "--body=hello")
    assert amqp("get", f"--queue={queue}") == "hello"


def test_get_on_an_empty_queue_fails(amqp: Tool, queue: str) -> None:
    amqp("get", f"--queue={queue}", exit_code=2)


def test_a_queue_declared_without_a_name_gets_one(amqp: Tool) -> None:
    queue = amqp("declare-queue", "--queue=").strip()
    assert queue.startswith("amq.gen-")
    amqp("delete-queue", f"--queue={queue}")


def test_delete_prints_the_number_of_deleted_messages(amqp: Tool, name: str) -> None:
    amqp("declare-queue", f"--queue={name}")
    for _ in range(3):
        amqp("publish", f"--routing-key={name}", "--body=x")
    assert amqp("delete-queue", f"--queue={name}").strip() == "3"


def test_a_durable_queue_keeps_its_persistent_message(amqp: Tool, name: str) -> None:
    amqp("declare-queue", f"--queue={name}", "--durable")
    amqp("publish", "--persistent", f"--routing-key={name}", "--body=kept")
    assert amqp("get", f"--queue={name}") == "kept"
    amqp("delete-queue", f"--queue={name}")


def test_every_line_becomes_a_message_and_is_consumed_in_order(amqp: Tool, queue: str) -> None:
    amqp("publish", "--line-buffered", f"--routing-key={queue}", stdin=b"one\ntwo\nthree\n")
    assert amqp("consume", f"--queue={queue}", "--count=3", "--", "cat") == "one\ntwo\nthree\n"
    amqp("get", f"--queue={queue}", exit_code=2)


@pytest.mark.parametrize("mode", ["--prefetch-count=1", "--no-ack"])
def test_a_consumed_message_is_not_redelivered(amqp: Tool, queue: str, mode: str) -> None:
    for body in ("one", "two"):
        amqp("publish", f"--routing-key={queue}", f"--body={body}")
    assert amqp("consume", f"--queue={queue}", "--count=2", mode, "--", "cat") == "onetwo"
    amqp("get", f"--queue={queue}", exit_code=2)


def test_prefetched_unconsumed_messages_are_requeued(amqp: Tool, queue: str) -> None:
    for body in ("one", "two", "three"):
        amqp("publish", f"--routing-key={queue}", f"--body={body}")
    assert amqp("consume", f"--queue={queue}", "--count=1", "--prefetch-count=10", "--", "cat") == "one"
    assert amqp("get", f"--queue={queue}") + amqp("get", f"--queue={queue}") == "twothree"


def test_a_body_above_one_mebibyte_is_delivered_unchanged(amqp: Tool, queue: str) -> None:
    body = b"x" * (1024 * 1024 + 1)
    amqp("publish", f"--routing-key={queue}", stdin=body)
    assert amqp("get", f"--queue={queue}") == body.decode()


def test_properties_and_headers_are_received_by_other_clients(amqp: Tool, queue: str, channel: BlockingChannel) -> None:
    options = ("--content-type=text/plain", "--content-encoding=utf-8", "--reply-to=answers", "--header=tenant: acme")
    amqp("publish", "--persistent", f"--routing-key={queue}", *options, "--body=hello")
    _, properties, _ = channel.basic_get(queue, auto_ack=True)
    assert properties is not None
    assert (properties.content_type, properties.content_encoding) == ("text/plain", "utf-8")
    assert (properties.reply_to, properties.delivery_mode) == ("answers", 2)
    assert properties.headers == {"tenant": "acme"}


def test_a_message_goes_through_a_named_exchange(amqp: Tool, queue: str, channel: BlockingChannel) -> None:
    channel.queue_bind(queue, "amq.topic", f"{queue}.#")
    amqp("publish", "--exchange=amq.topic", f"--routing-key={queue}.news", "--body=hello")
    assert fetch(channel, queue, 1) == [b"hello"]


def test_an_exclusive_consumer_queue_receives_from_its_exchange(
    broker: Broker, amqp: Tool, channel: BlockingChannel, name: str
) -> None:
    channel.exchange_declare(name, "fanout")
    binding = (f"--exchange={name}", "--routing-key=any")  # without a key this amqp-consume crashes
    consumer = subprocess.Popen(
        [program("amqp-consume"), f"--url={broker.url}", "--exclusive", *binding, "--count=1", "cat"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert consumer.stderr is not None
    assert consumer.stderr.readline().startswith(b"Server provided queue name: amq.gen-")
    while consumer.poll() is None:  # it binds after it prints the line: publish until it receives a message
        amqp("publish", f"--exchange={name}", "--routing-key=", "--body=to all")
    output, _ = consumer.communicate(timeout=10)
    assert (consumer.returncode, output) == (0, b"to all")
    channel.exchange_delete(name)


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("get", ("--queue=interop-absent",), "NOT_FOUND - no queue 'interop-absent' in vhost '/'"),
        ("declare-queue", ("--queue=amq.mine",), "queue name 'amq.mine' contains reserved prefix 'amq.*'"),
        ("consume", ("--queue=interop-absent", "--", "cat"), "NOT_FOUND - no queue 'interop-absent' in vhost '/'"),
    ],
)
def test_a_refusal_is_printed_and_fails(amqp: Tool, tool: str, arguments: tuple[str, ...], text: str) -> None:
    assert text in amqp(tool, *arguments, exit_code=1)


def test_an_exclusive_queue_is_locked_for_the_tools(amqp: Tool, channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, exclusive=True)
    assert "RESOURCE_LOCKED" in amqp("get", f"--queue={name}", exit_code=1)


def test_a_wrong_password_is_refused(broker: Broker) -> None:
    url = f"amqp://{broker.user}:wrong@{broker.host}:{broker.port}/"
    ended = run([program("amqp-get"), f"--url={url}", "--queue=any"])
    assert ended.returncode == 1
    assert b"ACCESS_REFUSED" in ended.stderr
