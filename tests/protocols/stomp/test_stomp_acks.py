"""ACK and NACK: the three modes, redelivery, and deliveries that cannot be settled."""

import pytest

from gateway_stomp import subscribing
from tests.protocols.stomp.dialogue import Client, Gateway, frame, receipt
from tests.protocols.stomp.frame_reader import ReceivedFrame
from tests.protocols.stomp.test_stomp_connecting import refusal

VERSIONS = ("1.0", "1.1", "1.2")


def subscribed(gateway: Gateway, mode: str, count: int, version: str = "1.2") -> tuple[Client, list[ReceivedFrame]]:
    """Return a client with a subscription to ``/queue/q`` in this mode, and its messages, numbered from 0."""
    client = gateway.client(version)
    client.subscribe("/queue/q", ack=mode)
    for number in range(count):
        gateway.publish("", "q", b"%d" % number)
    return client, client.receive_frames()


def left(gateway: Gateway) -> list[bytes]:
    """Return the bodies in ``/queue/q``, in order."""
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
def test_unacknowledged_messages_are_requeued_at_their_old_positions(version: str, mode: str) -> None:
    gateway = Gateway()
    client, _ = subscribed(gateway, mode, 3, version)
    client.lose()
    gateway.publish("", "q", b"3")
    other = gateway.client()
    messages = other.subscribe("/queue/q")
    assert [message.body for message in messages] == [b"0", b"1", b"2", b"3"]
    assert [message["redelivered"] for message in messages] == ["true", "true", "true", "false"]


@pytest.mark.parametrize("version", VERSIONS)
def test_client_mode_acknowledges_all_earlier_deliveries(version: str) -> None:
    gateway = Gateway()
    client, messages = subscribed(gateway, "client", 4, version)
    assert client.settle("ACK", messages[2]) == []
    client.lose()
    assert left(gateway) == [b"3"]


@pytest.mark.parametrize("version", VERSIONS)
def test_client_individual_mode_acknowledges_one_delivery(version: str) -> None:
    gateway = Gateway()
    client, messages = subscribed(gateway, "client-individual", 4, version)
    assert client.settle("ACK", messages[2]) == []
    client.lose()
    assert left(gateway) == [b"0", b"1", b"3"]


def test_client_mode_acknowledges_only_deliveries_of_the_same_subscription() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", "0", ack="client")
    client.subscribe("/queue/r", "1", ack="client")
    gateway.publish("", "q", b"0")
    gateway.publish("", "r", b"1")
    _, second = client.receive_frames()
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
def test_nack_requeues_or_rejects(version: str, headers: dict[str, str], default: bool, comes_back: bool) -> None:
    gateway = Gateway(nack_requeues=default)
    client, (message,) = subscribed(gateway, "client-individual", 1, version)
    again = client.settle("NACK", message, headers)
    assert [each["redelivered"] for each in again] == ["true"] * comes_back


def test_a_rejected_message_becomes_a_dead_letter() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/topic/dead", "dead")
    told = {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "dead"}
    client.command("SUBSCRIBE", {"id": "0", "destination": "/queue/q", "ack": "client-individual", **told})
    (message,) = client.publish("/amq/queue/q", b"bad")
    (letter,) = client.settle("NACK", message, {"requeue": "false"})
    assert (letter["subscription"], letter.body, letter["x-first-death-reason"]) == ("dead", b"bad", "rejected")


def test_nack_in_client_mode_settles_all_earlier_deliveries() -> None:
    gateway = Gateway()
    client, messages = subscribed(gateway, "client", 3)
    client.settle("NACK", messages[1], {"requeue": "false"})
    client.lose()
    assert left(gateway) == [b"2"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("verb", ["ACK", "NACK"])
@pytest.mark.parametrize("value", ["nonsense", "", "T_0@@session@@1", "T_0@@{session}@@x", "T_0@@{session}@@"])
def test_an_ack_with_an_invalid_id_is_refused(version: str, verb: str, value: str) -> None:
    client, _ = subscribed(Gateway(), "client-individual", 1, version)
    name = "id" if version == "1.2" else "message-id"
    assert refusal(client.command(verb, {name: value.format(session=client.welcome["session"])})) == "Invalid header"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("verb", ["ACK", "NACK"])
@pytest.mark.parametrize("tag", ["T_0@@{session}@@2", "T_0@@{session}@@0", "T_9@@{session}@@1"])
@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_an_ack_of_an_unknown_delivery_is_refused(version: str, verb: str, tag: str, mode: str) -> None:
    client, _ = subscribed(Gateway(), mode, 1, version)
    name = "id" if version == "1.2" else "message-id"
    assert refusal(client.command(verb, {name: tag.format(session=client.welcome["session"])})) == "Message not found"


@pytest.mark.parametrize("verb", ["ACK", "NACK"])
@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_a_delivery_is_not_settled_twice(verb: str, mode: str) -> None:
    client, (message,) = subscribed(Gateway(), mode, 1)
    client.settle("ACK", message)
    assert refusal(client.settle(verb, message)) == "Message not found"


def test_a_delivery_in_auto_mode_cannot_be_settled() -> None:
    client, (message,) = subscribed(Gateway(), "auto", 1)
    assert refusal(client.command("ACK", id=message["message-id"])) == "Message not found"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("verb", ["ACK", "NACK"])
def test_ack_requires_the_header_with_the_message_id(version: str, verb: str) -> None:
    assert refusal(Gateway().client(version).command(verb, other="1")) == "Missing header"


@pytest.mark.parametrize("verb", ["ACK", "NACK"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("said", [{}, {"subscription": "9"}], ids=["nothing else", "another subscription"])
def test_the_message_id_alone_identifies_the_delivery_before_1_2(said: dict[str, str], version: str, verb: str) -> None:
    gateway = Gateway()
    client, (message,) = subscribed(gateway, "client-individual", 1, version)
    headers = {"message-id": message["message-id"], "requeue": "false", "receipt": "r", **said}
    assert client.command(verb, headers) == [receipt("r")]
    client.lose()
    assert left(gateway) == []


def test_deliveries_of_an_ended_subscription_can_still_be_settled() -> None:
    gateway = Gateway()
    client, (message,) = subscribed(gateway, "client-individual", 1)
    client.command("UNSUBSCRIBE", id="0")
    assert not len(gateway.vhost.queue("q"))
    assert client.settle("ACK", message) == []
    client.lose()
    assert left(gateway) == []


def test_unsettled_deliveries_of_an_ended_subscription_are_requeued_at_the_end_of_the_connection() -> None:
    gateway = Gateway()
    client, _ = subscribed(gateway, "client-individual", 1)
    client.command("UNSUBSCRIBE", id="0")
    client.lose()
    assert left(gateway) == [b"0"]


def test_deliveries_of_an_ended_subscription_can_be_settled_under_a_new_one_with_its_id() -> None:
    gateway = Gateway()
    client, (first,) = subscribed(gateway, "client", 1)
    client.command("UNSUBSCRIBE", id="0")
    client.subscribe("/queue/q", ack="client")
    (second,) = client.publish("/queue/q")
    assert client.settle("ACK", second) == []
    client.lose()
    assert left(gateway) == []
    assert first["message-id"] != second["message-id"]


def test_deliveries_of_an_ended_subscription_keep_their_own_message_ids() -> None:
    gateway = Gateway()
    client, (first,) = subscribed(gateway, "client-individual", 1)
    client.command("UNSUBSCRIBE", id="0")
    client.subscribe("/queue/q", ack="client-individual")
    assert client.settle("ACK", first) == []
    assert gateway.vhost.queue("q").unsettled == 0


def test_the_receipt_of_an_ack_waits_for_the_disk() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", ack="client-individual")
    (message,) = client.publish("/queue/q", b"kept", {"persistent": "true"})
    client.machine.receive(frame("ACK", {"id": message["ack"], "receipt": "r"}))
    assert client.receive_now() == []
    assert client.receive_frames() == [receipt("r")]
    assert not len(gateway.crashed().vhost.queue("q"))


def test_a_client_that_never_acknowledges_is_disconnected() -> None:
    gateway = Gateway(consumer_timeout_ms=60_000)
    client, _ = subscribed(gateway, "client-individual", 1)
    client.tick()
    gateway.advance(59)
    client.tick()
    assert client.receive_frames() == []
    gateway.advance(2)
    client.tick()
    assert refusal(client.receive_frames()) == "precondition_failed"
    assert left(gateway) == [b"0"]


@pytest.mark.parametrize("late", [0, 4, 9])
def test_the_timeouts_of_very_many_subscriptions_are_checked_in_rotation(
    monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    monkeypatch.setattr(subscribing, "_CHECKED_AT_ONCE", 3)
    gateway = Gateway(consumer_timeout_ms=60_000)
    client = gateway.client()
    for number in range(10):
        client.subscribe(f"/queue/{number}", id=str(number), ack="client-individual")
    client.publish(f"/queue/{late}", b"m")
    for _ in range(4):
        client.tick()
    gateway.advance(61)
    ticks = 0
    while not (frames := client.receive_frames()):
        client.tick()
        ticks += 1
        assert ticks <= 8
    assert refusal(frames) == "precondition_failed"
    assert len(gateway.vhost.queue(str(late))) == 1


def test_a_delivery_keeps_its_delivery_count_after_a_kill() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", ack="client-individual")
    (message,) = client.publish("/queue/q", b"kept", {"persistent": "true"})
    client.settle("NACK", message)
    gateway.settle()
    (again,) = gateway.crashed().client().subscribe("/queue/q")
    assert again["redelivered"] == "true"
