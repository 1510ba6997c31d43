"""SUBSCRIBE and UNSUBSCRIBE: queues, topics, exchanges, durable subscriptions, prefetch, and MESSAGE frames."""

import pytest

from tests.protocols.stomp.dialogue import Gateway, receipt
from tests.protocols.stomp.frame_reader import CLOSED, ReceivedFrame
from tests.protocols.stomp.test_stomp_connecting import refusal

VERSIONS = ("1.0", "1.1", "1.2")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_has_its_headers(version: str) -> None:
    client = Gateway().client(version)
    client.subscribe("/queue/q", "7")
    (message,) = client.publish("/queue/q", b"hi\0there", {"content-type": "text/plain", "a": "b"})
    assert message == ReceivedFrame(
        "MESSAGE",
        {
            "subscription": "7",
            "destination": "/queue/q",
            "message-id": f"T_7@@{client.welcome['session']}@@1",
            "redelivered": "false",
            "content-type": "text/plain",
            "a": "b",
            "content-length": "8",
        },
        b"hi\0there",
    )


def test_an_empty_body_has_content_length_0() -> None:
    client = Gateway().client()
    client.subscribe("/queue/q")
    (message,) = client.publish("/queue/q")
    assert (message.body, message["content-length"]) == (b"", "0")


def test_the_id_is_optional_in_1_0() -> None:
    client = Gateway().client("1.0")
    assert client.command("SUBSCRIBE", destination="/queue/q") == []
    (message,) = client.publish("/queue/q", b"hi")
    assert "subscription" not in message.headers
    assert message["message-id"] == f"Q_/queue/q@@{client.welcome['session']}@@1"
    assert client.command("UNSUBSCRIBE", destination="/queue/q") == []
    assert client.publish("/queue/q", b"hi") == []


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("verb", ["SUBSCRIBE", "UNSUBSCRIBE"])
def test_the_id_is_required_in_other_versions(version: str, verb: str) -> None:
    assert refusal(Gateway().client(version).command(verb, destination="/queue/q")) == "Missing Header"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"id": "0"}, "Missing destination"),
        ({"id": "0", "destination": "/nowhere"}, "Unknown destination"),
        ({"id": "0", "destination": "/temp-queue/x"}, "Invalid destination"),
        ({"id": "/temp-queue/x", "destination": "/queue/q"}, "Invalid id"),
        ({"id": "0", "destination": "/queue/q", "ack": "sometimes"}, "Invalid header"),
        ({"id": "0", "destination": "/queue/q", "prefetch-count": "many"}, "precondition_failed"),
        ({"id": "0", "destination": "/queue/q", "prefetch-count": "-1"}, "precondition_failed"),
        ({"id": "0", "destination": "/queue/q", "x-priority": "high"}, "precondition_failed"),
        ({"id": "0", "destination": "/queue/q", "x-stream-offset": "first"}, "precondition_failed"),
        ({"id": "0", "destination": "/amq/queue/none"}, "not_found"),
        ({"id": "0", "destination": "/reply-queue/none"}, "not_found"),
        ({"id": "0", "destination": "/exchange/none/k"}, "not_found"),
    ],
    ids=lambda value: " ".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, dict) else value,
)
def test_an_invalid_subscription_is_refused(headers: dict[str, str], message: str) -> None:
    assert refusal(Gateway().client().command("SUBSCRIBE", headers)) == message


def test_a_duplicate_id_is_refused() -> None:
    client = Gateway().client()
    client.subscribe("/queue/a", "0")
    assert refusal(client.subscribe("/queue/b", "0")) == "Duplicated subscription identifier"


def test_an_id_may_be_used_again_and_message_ids_continue() -> None:
    client = Gateway().client()
    client.subscribe("/queue/a", "0")
    (first,) = client.publish("/queue/a")
    client.command("UNSUBSCRIBE", id="0")
    client.subscribe("/queue/a", "0")
    (second,) = client.publish("/queue/a")
    assert first["message-id"] != second["message-id"]


@pytest.mark.parametrize("headers", [{"id": "9"}, {"id": "9", "destination": "/queue/q"}])
def test_unsubscribe_without_a_subscription_is_refused(headers: dict[str, str]) -> None:
    assert refusal(Gateway().client().command("UNSUBSCRIBE", headers)) == "No subscription found"


def test_the_length_of_an_id_is_limited_by_the_consumer_tag() -> None:
    client = Gateway().client()
    assert client.subscribe("/queue/q", "i" * 253, receipt="r") == [receipt("r")]
    assert refusal(client.subscribe("/queue/q", "i" * 254)) == "Invalid id"


def test_a_client_cannot_unsubscribe_from_a_temporary_queue() -> None:
    client = Gateway().client()
    client.publish("/queue/q", b"", {"reply-to": "/temp-queue/x"})
    assert refusal(client.command("UNSUBSCRIBE", id="/temp-queue/x")) == "Invalid id"


def test_subscribe_and_unsubscribe_have_receipts() -> None:
    client = Gateway().client()
    assert client.subscribe("/queue/q", receipt="1") == [receipt("1")]
    assert client.command("UNSUBSCRIBE", id="0", receipt="2") == [receipt("2")]


def test_a_declared_queue_is_stored_when_the_receipt_is_sent() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.machine.receive(b"SUBSCRIBE\nid:0\ndestination:/queue/q\nreceipt:r\n\n\0")
    assert client.receive_now() == []
    assert client.receive_frames() == [receipt("r")]
    assert "q" in gateway.crashed().vhost.queue_by_name


def test_headers_can_set_queue_arguments() -> None:
    gateway = Gateway()
    gateway.client().subscribe("/queue/q", x_max_length="5", x_single_active_consumer="true")
    assert gateway.vhost.queue("q").arguments == {"x-max-length": 5, "x-single-active-consumer": True}


def test_persistent_is_equivalent_to_durable() -> None:
    gateway = Gateway()
    gateway.client().subscribe("/queue/q", persistent="false")
    assert not gateway.vhost.queue("q").is_durable


def test_two_subscriptions_share_a_queue() -> None:
    gateway = Gateway()
    one, two = gateway.client(), gateway.client()
    one.subscribe("/queue/q")
    two.subscribe("/queue/q")
    for number in range(4):
        gateway.publish("", "q", b"%d" % number)
    assert (one.bodies(), two.bodies()) == ([b"0", b"2"], [b"1", b"3"])


def test_the_consumer_with_the_higher_priority_is_served_first() -> None:
    gateway = Gateway()
    low, high = gateway.client(), gateway.client()
    low.subscribe("/queue/q")
    high.subscribe("/queue/q", x_priority="10")
    for _ in range(3):
        gateway.publish("", "q")
    assert (len(low.receive_frames()), len(high.receive_frames())) == (0, 3)


@pytest.mark.parametrize(
    ("subscribed", "sent", "comes"),
    [
        ("/topic/a.b", "/topic/a.b", True),
        ("/topic/a.*", "/topic/a.b", True),
        ("/topic/a.#", "/topic/a.b.c", True),
        ("/topic/a.b", "/topic/a.c", False),
        ("/exchange/amq.topic/a.*", "/topic/a.b", True),
        ("/exchange/amq.fanout", "/exchange/amq.fanout/any", True),
        ("/exchange/amq.direct/k", "/exchange/amq.direct/k", True),
        ("/exchange/amq.direct/k", "/exchange/amq.direct/l", False),
    ],
)
def test_subscriptions_to_topics_and_exchanges_receive_matching_messages(
    subscribed: str, sent: str, comes: bool
) -> None:
    client = Gateway().client()
    client.subscribe(subscribed)
    assert [message.body for message in client.publish(sent, b"hi")] == [b"hi"] * comes


def test_a_message_has_the_destination_it_was_sent_to() -> None:
    client = Gateway().client()
    client.subscribe("/topic/#")
    (message,) = client.publish("/topic/a.b")
    assert message["destination"] == "/topic/a.b"


@pytest.mark.parametrize(("destination", "is_exclusive"), [("/topic/t", False), ("/exchange/amq.topic/t", True)])
def test_a_subscription_has_its_own_queue_until_it_ends(destination: str, is_exclusive: bool) -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe(destination)
    (queue,) = gateway.vhost.queue_by_name.values()
    assert queue.name.startswith("stomp-subscription-")
    assert (queue.is_durable, queue.is_auto_delete, queue.owner is not None) == (False, True, is_exclusive)
    client.command("UNSUBSCRIBE", id="0")
    assert not gateway.vhost.queue_by_name


def test_the_client_may_name_the_queue_of_a_subscription() -> None:
    gateway = Gateway()
    gateway.client().subscribe("/topic/t", x_queue_name="mine")
    assert list(gateway.vhost.queue_by_name) == ["mine"]


# Durable subscriptions


@pytest.mark.parametrize("header", ["durable", "persistent"])
def test_a_durable_subscription_collects_messages_while_disconnected(header: str) -> None:
    gateway = Gateway()
    first = gateway.client()
    first.subscribe("/topic/news", "reader", **{header: "true"})
    first.command("DISCONNECT")
    gateway.client().publish("/topic/news", b"missed", {"persistent": "true"})
    after = gateway.crashed()
    second = after.client()
    (message,) = second.subscribe("/topic/news", "reader", **{header: "true"})
    assert message.body == b"missed"


def test_the_queue_of_a_durable_subscription_has_rabbitmqs_name() -> None:
    gateway = Gateway()
    gateway.client().subscribe("/topic/news", "reader", durable="true")
    (queue,) = gateway.vhost.queue_by_name.values()
    assert queue.name == "stomp-subscription-4nVvzVGvGXmuH5JXuuSbkA"
    assert (queue.is_durable, queue.is_auto_delete, queue.owner) == (True, False, None)


def test_a_durable_subscription_created_by_rabbitmq_continues() -> None:
    gateway = Gateway()
    name = "stomp-subscription-4nVvzVGvGXmuH5JXuuSbkA"
    queue = gateway.vhost.declare_queue(name, is_durable=True, is_auto_delete=True)
    assert gateway.client().subscribe("/topic/news", "reader", durable="true") == []
    assert len(queue.consumers) == 1


def test_the_client_may_name_the_queue_of_a_durable_subscription() -> None:
    gateway = Gateway()
    gateway.client().subscribe("/topic/news", "reader", durable="true", x_queue_name="mine")
    assert gateway.vhost.queue("mine").is_durable


def test_a_durable_subscription_needs_an_id() -> None:
    received = Gateway().client("1.0").command("SUBSCRIBE", destination="/topic/t", durable="true")
    assert refusal(received) == "Missing Header"


def test_unsubscribe_deletes_a_durable_subscription() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/topic/news", "reader", durable="true")
    client.command("UNSUBSCRIBE", id="reader", durable="true")
    assert not gateway.vhost.queue_by_name


def test_a_durable_subscription_survives_a_disconnect() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/topic/news", "reader", durable="true")
    client.command("UNSUBSCRIBE", id="reader")
    assert len(gateway.vhost.queue_by_name) == 1


def test_unsubscribe_never_deletes_a_shared_queue() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", "0", durable="true")
    client.command("UNSUBSCRIBE", id="0", durable="true")
    assert "q" in gateway.vhost.queue_by_name


# Flow


def test_prefetch_limits_unacknowledged_deliveries() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", ack="client-individual", prefetch_count="2")
    for number in range(3):
        gateway.publish("", "q", b"%d" % number)
    first, second = client.receive_frames()
    assert client.settle("ACK", second)[0].body == b"2"
    assert client.settle("ACK", first) == []


def test_prefetch_is_ignored_in_auto_mode() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", prefetch_count="1")
    for _ in range(5):
        gateway.publish("", "q")
    assert len(client.receive_frames()) == 5


def test_a_client_that_does_not_read_is_skipped() -> None:
    gateway = Gateway()
    slow, other = gateway.client(), gateway.client()
    slow.subscribe("/queue/q")
    for _ in range(20):
        gateway.publish("", "q", b"x" * 100_000)
    slow.is_reading = False
    gateway.settle()
    assert 0 < len(gateway.vhost.queue("q")) < 20
    other.subscribe("/queue/q")
    assert not len(gateway.vhost.queue("q"))
    slow.is_reading = True
    slow.machine.outbox.wake()
    assert slow.receive_frames()


# Ends


def test_a_subscription_whose_queue_is_deleted_ends_the_connection() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", "7")
    gateway.vhost.delete_queue(gateway.vhost.queue("q"))
    received = client.receive_frames()
    assert refusal(received) == "Server cancelled subscription"
    assert received[0]["subscription"] == "7"


def test_unsettled_deliveries_of_a_deleted_queue_are_removed_from_the_store() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", ack="client-individual")
    client.publish("/queue/q", b"kept", {"persistent": "true"})
    ((_, subscription),) = client.machine.conversation.subscribing._subscription_by_tag.items()  # type: ignore[union-attr]
    (delivery,) = subscription.ledger
    stored = delivery.entry.message.id
    assert gateway.store.messages([stored]) != [None]
    gateway.vhost.delete_queue(gateway.vhost.queue("q"))
    client.receive_frames()
    assert gateway.store.messages([stored]) == [None]


def test_an_exclusive_queue_of_another_is_locked() -> None:
    gateway = Gateway()
    gateway.vhost.declare_queue("q", owner=gateway)
    assert refusal(gateway.client().subscribe("/amq/queue/q")) == "resource_locked"


def test_subscriptions_and_own_queues_end_with_the_connection() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/topic/t", "t")
    client.subscribe("/exchange/amq.topic/t", "x")
    client.subscribe("/queue/q", "q")
    client.lose()
    assert list(gateway.vhost.queue_by_name) == ["q"]
    assert not len(gateway.vhost.queue("q").consumers)


def test_a_body_on_anything_but_send_is_refused_since_1_1() -> None:
    assert refusal(Gateway().client().command("SUBSCRIBE", {"id": "0"}, b"body")) == "Invalid frame"
    assert refusal(Gateway().client("1.1").command("BEGIN", {"transaction": "t"}, b"body")) == "Invalid frame"
    assert Gateway().client("1.0").command("BEGIN", {"transaction": "t"}, b"body") == []


def test_no_frame_follows_the_last_one() -> None:
    received = Gateway().client().command("NONSENSE")
    assert received[-1] == CLOSED
