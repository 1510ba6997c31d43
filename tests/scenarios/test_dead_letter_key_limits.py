"""A dead-letter key too long for a record is refused over every protocol, and the broker can be restarted."""

from collections.abc import Callable

import pytest
from pamqp import commands

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.bounds import LONGEST_AMQP_KEY
from gateway.kernel.messages.message import Value
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, all_of, published, queue

KEY = "k" * 60_000
ARGUMENTS = {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": KEY}
REFUSAL = f"60000 bytes are more than {LONGEST_AMQP_KEY}"


def over_amqp(gateway: AllProtocolsBroker) -> str:
    peer = gateway.peer()
    (received,) = peer.send(commands.Queue.Declare(0, "q", durable=True, arguments=ARGUMENTS)).receive()
    assert "406" in received
    return received


def over_stomp(gateway: AllProtocolsBroker) -> str:
    client = gateway.stomp()
    received = client.subscribe("/queue/q", durable="true", **{"auto-delete": "false"}, **ARGUMENTS)
    assert received[0].verb == "ERROR"
    return received[0].body.decode()


def by_policy(gateway: AllProtocolsBroker) -> str:
    with pytest.raises(PreconditionFailed) as refusal:
        gateway.policy(".*", dead_letter_exchange="amq.topic", dead_letter_routing_key=KEY)
    return str(refusal.value)


SENDER_KEYS = [
    pytest.param({"CC": ["k"] * 1_025}, "1025 keys in CC and BCC are more than 1024", id="many keys in CC"),
    pytest.param({"CC": ["k"] * 1_000, "BCC": ["k"] * 25}, "1025 keys", id="many keys in both"),
    pytest.param({"BCC": ["k" * 256]}, "256 bytes are more than 255", id="a long key"),
]


@pytest.mark.parametrize(("headers", "reason"), SENDER_KEYS)
def test_additional_keys_of_a_message_are_limited(headers: dict[str, Value], reason: str) -> None:
    gateway = AllProtocolsBroker()
    peer = gateway.peer()
    peer.send(*queue("q", "k"), published("k", b"fine", headers={"CC": ["k"] * 1_024})).receive()
    (received,) = peer.send(published("k", b"not", headers=headers)).receive()
    assert "406" in received
    assert reason in received
    assert all_of(gateway.peer(), "q") == [b"fine"]


DOORS = [
    pytest.param(over_amqp, REFUSAL, id="AMQP"),
    pytest.param(over_stomp, REFUSAL, id="STOMP"),
    pytest.param(by_policy, "is not a valid dead letter routing key", id="policy"),
]


@pytest.mark.parametrize(("ask", "reason"), DOORS)
def test_a_dead_letter_key_too_long_for_a_record_is_refused(
    ask: Callable[[AllProtocolsBroker], str], reason: str
) -> None:
    gateway = AllProtocolsBroker()
    assert reason in ask(gateway)
    assert "q" not in gateway.broker.vhost("/").queue_by_name
    gateway.settle()
    assert "q" not in gateway.crashed().broker.vhost("/").queue_by_name
