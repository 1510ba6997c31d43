"""docs/troubleshooting.md has the errors as clients and operators see them."""

from collections.abc import Callable, Iterator
from typing import Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker

from gateway.cli.main import main
from tests.interop.gateways import gateway_in
from tests.interop.pages.blocks import ROOT
from tests.running import HOST, Gateway

PAGE: Final = (ROOT / "docs/troubleshooting.md").read_text()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_in(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


def connection(gateway: Gateway, vhost: str = "/", password: str = "guest") -> BlockingConnection:
    host, port = gateway.addresses["amqp"]
    return BlockingConnection(pika.ConnectionParameters(host, port, vhost, pika.PlainCredentials("guest", password)))


def redeclare(channel: BlockingChannel, gateway: Gateway) -> None:
    channel.queue_declare("q")
    channel.queue_declare("q", durable=True)


def declare_elsewhere(channel: BlockingChannel, gateway: Gateway) -> None:
    channel.queue_declare("mine", exclusive=True)
    connection(gateway).channel().queue_declare("mine", passive=True)


def acknowledge_nothing(channel: BlockingChannel, gateway: Gateway) -> None:
    channel.basic_ack(99)
    channel.queue_declare("", exclusive=True)  # the answer to the ack comes before that of this


def read_without_prefetch(channel: BlockingChannel, gateway: Gateway) -> None:
    channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
    channel.basic_consume("stream", lambda *_: None)


MISTAKES: Final[dict[str, Callable[[BlockingChannel, Gateway], object]]] = {
    "other properties": redeclare,
    "an invalid value": lambda channel, _: channel.queue_declare("v", arguments={"x-message-ttl": -1}),
    "no queue": lambda channel, _: channel.basic_get("missing"),
    "no exchange": lambda channel, _: channel.exchange_declare("missing", passive=True),
    "an exclusive queue": declare_elsewhere,
    "a reserved name": lambda channel, _: channel.queue_declare("amq.x"),
    "an unknown tag": acknowledge_nothing,
    "a stream": read_without_prefetch,
}

#: The names of the test, and those of the page.
NAMES: Final = {
    "queue 'v'": "queue 'q'",
    "queue 'stream'": "queue 'q'",
    "no queue 'missing'": "no queue 'q'",
    "no exchange 'missing'": "no exchange 'x'",
    "locked queue 'mine'": "locked queue 'q'",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_page_has_the_text_of_a_refusal(gateway: Gateway, mistake: str) -> None:
    with pytest.raises(ChannelClosedByBroker) as refused:
        MISTAKES[mistake](connection(gateway).channel(), gateway)
    text = refused.value.reply_text
    for name, shown in NAMES.items():
        text = text.replace(name, shown)
    explanation = text.partition(" - ")[2].split(". It could")[0]
    assert explanation in PAGE, f"{refused.value.reply_code} {text}"


def test_the_page_has_the_texts_of_refused_logins(gateway: Gateway) -> None:
    with pytest.raises(AMQPConnectionError) as refused:
        connection(gateway, password="wrong")
    assert "Login was refused using authentication mechanism PLAIN. For details see the broker logfile." in PAGE
    assert "Login was refused using authentication mechanism PLAIN." in str(refused.value)
    with pytest.raises(AMQPConnectionError, match="vhost NAME not found"):
        connection(gateway, vhost="NAME")
    assert "NOT_ALLOWED - vhost NAME not found" in PAGE


def test_the_page_has_the_lines_of_refused_starts(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--set", "amqp.prot=1"]) == 65
    assert "amqp.prot: no such setting; did you mean amqp.port?" in capsys.readouterr().err
    assert "`amqp.prot: no such setting; did you mean amqp.port?`" in PAGE
    second = Gateway(gateway.directory / "second")
    assert second.run_to_end(f"amqp.port={gateway.addresses['amqp'][1]}") == 65
    assert f"amqp.port: cannot listen on {HOST}:{gateway.addresses['amqp'][1]}: Address already in use" in second.log
    assert "amqp.port: cannot listen on 0.0.0.0:5672: Address already in use" in PAGE
    third = Gateway(gateway.directory)
    assert third.run_to_end() == 69
    assert f"the store in {gateway.data} is in use by process {gateway.child.pid}: stop it first" in third.log
    assert "`the store in DIR is in use by process N: stop it first`" in PAGE
