"""ACK and NACK: the three modes, what comes back, and what is not there to be settled."""

import pytest

from tests.protocols.stomp.dialogue import Client, Gateway, Heard, frame, receipt
from tests.protocols.stomp.test_stomp_connecting import refusal

VERSIONS = ("1.0", "1.1", "1.2")


def subscribed(gateway: Gateway, mode: str, count: int, version: str = "1.2") -> tuple[Client, list[Heard]]:
    """Return a client that subscribed to ``/queue/q`` in this mode, and the messages it got, numbered from 0."""
    client = gateway.client(version)
    client.subscribe("/queue/q", ack=mode)
    for number in range(count):
        gateway.publish("", "q", b"%d" % number)
    return client, client.hear()


def left(gateway: Gateway) -> list[bytes]:
    """Return the bodies that wait in ``/queue/q``, in order."""
    queue = gateway.vhost.queue("q")
    entries = [queue.get() for _ in range(len(queue))]
    return [entry.message.body for entry in entries if entry is not None]


@pytest.mark.parametrize("version", VERSIONS)
def test_auto_acknowledges_by_sending(version: str) -> None:
    gateway = Gateway()
    client, messages = subscribed(gateway, "auto", 2, version)
    assert "ack" not in messages[0].headers
    client.lose()
    assert left(gateway) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_what_is_not_acknowledged_comes_back_in_its_place(version: str, mode: str) -> None:
    gateway = Gateway()
    client, _ = subscribed(gateway, mode, 3, version)
    client.lose()
    gateway.publish("", "q", b"3")
    other = gateway.client()
    messages = other.subscribe("/queue/q")
    assert [message.body for message in messages] == [b"0", b"1", b"2", b"3"]
    assert [message["redelivered"] for message in messages] == ["true", "true", "true", "false"]


@pytest.mark.parametrize("version", VERSIONS)
def test_client_acknowledges_all_before(version: str) -> None:
    gateway = Gateway()
    client, messages = subscribed(gateway, "client", 4, version)
    assert client.settle("ACK", messages[2]) == []
    client.lose()
    assert left(gateway) == [b"3"]


@pytest.mark.parametrize("version", VERSIONS)
def test_client_individual_acknowledges_one(version: str) -> None:
    gateway = Gateway()
    client, messages = subscribed(gateway, "client-individual", 4, version)
    assert client.settle("ACK", messages[2]) == []
    client.lose()
    assert left(gateway) == [b"0", b"1", b"3"]


def test_client_acknowledges_those_of_its_own_subscription_alone() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", "0", ack="client")
    client.subscribe("/queue/r", "1", ack="client")
    gateway.publish("", "q", b"0")
    gateway.publish("", "r", b"1")
    _, second = client.hear()
    client.settle("ACK", second)
    client.lose()
    assert (len(gateway.vhost.queue("q")), len(gateway.vhost.queue("r"))) == (1, 0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("headers", "default", "comes_back"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"requeue": "true"}, False, True),
        ({"requeue": "false"}, True, False),
    ],
)
def test_nack_puts_back_or_rejects(version: str, headers: dict[str, str], default: bool, comes_back: bool) -> None:
    gateway = Gateway(nack_requeues=default)
    client, (message,) = subscribed(gateway, "client-individual", 1, version)
    again = client.settle("NACK", message, headers)
    assert [each["redelivered"] for each in again] == ["true"] * comes_back


def test_a_rejected_message_becomes_a_dead_letter() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/topic/dead", "dead")
    told = {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "dead"}
    client.say("SUBSCRIBE", {"id": "0", "destination": "/queue/q", "ack": "client-individual", **told})
    (message,) = client.send("/amq/queue/q", b"bad")
    (letter,) = client.settle("NACK", message, {"requeue": "false"})
    assert (letter["subscription"], letter.body, letter["x-first-death-reason"]) == ("dead", b"bad", "rejected")


def test_nack_of_mode_client_is_for_all_before() -> None:
    gateway = Gateway()
    client, messages = subscribed(gateway, "client", 3)
    client.settle("NACK", messages[1], {"requeue": "false"})
    client.lose()
    assert left(gateway) == [b"2"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("verb", ["ACK", "NACK"])
@pytest.mark.parametrize("value", ["nonsense", "", "T_0@@session@@1", "T_0@@{session}@@x", "T_0@@{session}@@"])
def test_what_names_no_message_is_refused(version: str, verb: str, value: str) -> None:
    client, _ = subscribed(Gateway(), "client-individual", 1, version)
    name = "id" if version == "1.2" else "message-id"
    assert refusal(client.say(verb, {name: value.format(session=client.welcome["session"])})) == "Invalid header"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("verb", ["ACK", "NACK"])
@pytest.mark.parametrize("tag", ["T_0@@{session}@@2", "T_0@@{session}@@0", "T_9@@{session}@@1"])
@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_what_is_not_there_to_be_settled_is_refused(version: str, verb: str, tag: str, mode: str) -> None:
    client, _ = subscribed(Gateway(), mode, 1, version)
    name = "id" if version == "1.2" else "message-id"
    assert refusal(client.say(verb, {name: tag.format(session=client.welcome["session"])})) == "Message not found"


@pytest.mark.parametrize("verb", ["ACK", "NACK"])
@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_nothing_is_settled_twice(verb: str, mode: str) -> None:
    client, (message,) = subscribed(Gateway(), mode, 1)
    client.settle("ACK", message)
    assert refusal(client.settle(verb, message)) == "Message not found"


def test_what_was_sent_with_auto_is_not_there_to_be_settled() -> None:
    client, (message,) = subscribed(Gateway(), "auto", 1)
    assert refusal(client.say("ACK", id=message["message-id"])) == "Message not found"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("verb", ["ACK", "NACK"])
def test_the_header_that_names_a_message_is_needed(version: str, verb: str) -> None:
    assert refusal(Gateway().client(version).say(verb, other="1")) == "Missing header"


@pytest.mark.parametrize("verb", ["ACK", "NACK"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("said", [{}, {"subscription": "9"}], ids=["nothing else", "another subscription"])
def test_the_message_id_alone_says_what_is_settled_before_1_2(said: dict[str, str], version: str, verb: str) -> None:
    gateway = Gateway()
    client, (message,) = subscribed(gateway, "client-individual", 1, version)
    headers = {"message-id": message["message-id"], "requeue": "false", "receipt": "r", **said}
    assert client.say(verb, headers) == [receipt("r")]
    client.lose()
    assert left(gateway) == []


def test_what_a_subscription_left_behind_can_still_be_settled() -> None:
    gateway = Gateway()
    client, (message,) = subscribed(gateway, "client-individual", 1)
    client.say("UNSUBSCRIBE", id="0")
    assert not len(gateway.vhost.queue("q"))
    assert client.settle("ACK", message) == []
    client.lose()
    assert left(gateway) == []


def test_or_comes_back_when_the_connection_ends() -> None:
    gateway = Gateway()
    client, _ = subscribed(gateway, "client-individual", 1)
    client.say("UNSUBSCRIBE", id="0")
    client.lose()
    assert left(gateway) == [b"0"]


def test_or_is_settled_by_a_subscription_that_follows_under_its_id() -> None:
    gateway = Gateway()
    client, (first,) = subscribed(gateway, "client", 1)
    client.say("UNSUBSCRIBE", id="0")
    client.subscribe("/queue/q", ack="client")
    (second,) = client.send("/queue/q")
    assert client.settle("ACK", second) == []
    client.lose()
    assert left(gateway) == []
    assert first["message-id"] != second["message-id"]


def test_or_by_its_own_name_even_then() -> None:
    gateway = Gateway()
    client, (first,) = subscribed(gateway, "client-individual", 1)
    client.say("UNSUBSCRIBE", id="0")
    client.subscribe("/queue/q", ack="client-individual")
    assert client.settle("ACK", first) == []
    assert gateway.vhost.queue("q").unsettled == 0


def test_the_receipt_of_an_ack_waits_for_the_disk() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", ack="client-individual")
    (message,) = client.send("/queue/q", b"kept", {"persistent": "true"})
    client.machine.receive(frame("ACK", {"id": message["ack"], "receipt": "r"}))
    assert client.hear_now() == []
    assert client.hear() == [receipt("r")]
    assert not len(gateway.crashed().vhost.queue("q"))


def test_a_client_that_never_acknowledges_is_cut_off() -> None:
    gateway = Gateway(consumer_timeout_ms=60_000)
    client, _ = subscribed(gateway, "client-individual", 1)
    client.tick()
    gateway.advance(59)
    client.tick()
    assert client.hear() == []
    gateway.advance(2)
    client.tick()
    assert refusal(client.hear()) == "precondition_failed"
    assert left(gateway) == [b"0"]


def test_a_delivery_knows_its_tries_after_a_kill() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", ack="client-individual")
    (message,) = client.send("/queue/q", b"kept", {"persistent": "true"})
    client.settle("NACK", message)
    gateway.settle()
    (again,) = gateway.crashed().client().subscribe("/queue/q")
    assert again["redelivered"] == "true"
