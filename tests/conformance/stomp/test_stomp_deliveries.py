"""SUBSCRIBE and its results: MESSAGE frames, their acknowledgement, the end of a subscription."""

import pytest

from tests.conformance.stomp.frames import connect, frame, send, subscribe, unsubscribe
from tests.conformance.stomp.tables import Row, error, rows, states
from tests.protocols.stomp.dialogue import Client, Gateway

HEARD = "MESSAGE s /queue/q 'hi'"
CANNOT_SUBSCRIBE = "SUBSCRIBE: a subscription that cannot be created: ERROR, then close"
ID_REQUIRED = "SUBSCRIBE: id is required"
ID_OPTIONAL = "SUBSCRIBE: id is optional, and contained in MESSAGE"
NAMED_APART = "SUBSCRIBE: different subscriptions have different ids"
ACK_MODES = "SUBSCRIBE: ack is one of auto, client and client-individual"
OLD_ACK_MODES = "SUBSCRIBE: ack is one of auto and client"
NOT_BEFORE_THE_ACK = "SUBSCRIBE: client: not consumed before the ACK"
ID_OF_ONE = "UNSUBSCRIBE: id is required, and belongs to a subscription"
ID_OR_DESTINATION = "UNSUBSCRIBE: id or destination is required"
MESSAGE_ID = "ACK: message-id is required, and belongs to a MESSAGE"
ACK_ID = "ACK: id is required, and is the ack of a MESSAGE"
NACKS_LIKE_ACKS = "NACK: it takes the headers of ACK"

RECEIVING: list[Row] = [
    *rows("SUBSCRIBE: destination is required", "none", frame("SUBSCRIBE", "id:s", "receipt:r"),
          *error("Missing destination", "r")),
    *rows("SUBSCRIBE: messages are delivered as MESSAGE from then on", "sent before and after",
          send("/queue/q") + subscribe("/queue/q") + send("/queue/q"), HEARD, HEARD),
    *rows("SUBSCRIBE: messages are delivered as MESSAGE from then on", "a topic, sent before and after",
          send("/topic/t") + subscribe("/topic/t") + send("/topic/t"), "MESSAGE s /topic/t 'hi'"),
    *rows("SUBSCRIBE: messages are delivered as MESSAGE from then on", "two subscriptions of one topic",
          subscribe("/topic/t", id="a") + subscribe("/topic/#", id="b") + send("/topic/t"),
          "MESSAGE a /topic/t 'hi'", "MESSAGE b /topic/t 'hi'"),
    *rows(CANNOT_SUBSCRIBE, "no such queue", subscribe("/amq/queue/nowhere", "receipt:r"), *error("not_found", "r")),
    *rows(CANNOT_SUBSCRIBE, "no such exchange", subscribe("/exchange/nowhere", "receipt:r"), *error("not_found", "r")),
    *rows(CANNOT_SUBSCRIBE, "an unknown kind", subscribe("/nonsense", "receipt:r"),
          *error("Unknown destination", "r")),
    *rows(CANNOT_SUBSCRIBE, "a temporary queue", subscribe("/temp-queue/q", "receipt:r"),
          *error("Invalid destination", "r")),
    *rows(CANNOT_SUBSCRIBE, "a queue with other arguments",
          send("/queue/q", "x-max-length:5") + subscribe("/queue/other", "x-max-length:five", "receipt:r"),
          *error("precondition_failed", "r")),
    *rows(ID_REQUIRED, "none", frame("SUBSCRIBE", "destination:/queue/q", "receipt:r"), *error("Missing Header", "r")),
    *rows(ID_OPTIONAL, "none", frame("SUBSCRIBE", "destination:/queue/q") + send("/queue/q"),
          "MESSAGE /queue/q 'hi'"),
    *rows(ID_OPTIONAL, "one", subscribe("/queue/q") + send("/queue/q"), HEARD),
    *rows(NAMED_APART, "the same twice", subscribe("/queue/q") + subscribe("/queue/other", "receipt:r"),
          *error("Duplicated subscription identifier", "r")),
    *rows(NAMED_APART, "the same, one after the other",
          subscribe("/queue/q") + unsubscribe() + subscribe("/queue/other", "receipt:r"), "RECEIPT r"),
    *rows(ACK_MODES, "auto", subscribe("/queue/q", "ack:auto", "receipt:r"), "RECEIPT r"),
    *rows(ACK_MODES, "client", subscribe("/queue/q", "ack:client", "receipt:r"), "RECEIPT r"),
    *rows(ACK_MODES, "client-individual", subscribe("/queue/q", "ack:client-individual", "receipt:r"), "RECEIPT r"),
    *rows(ACK_MODES, "another", subscribe("/queue/q", "ack:never", "receipt:r"), *error("Invalid header", "r")),
    *rows(OLD_ACK_MODES, "auto", subscribe("/queue/q", "ack:auto", "receipt:r"), "RECEIPT r"),
    *rows(OLD_ACK_MODES, "client", subscribe("/queue/q", "ack:client", "receipt:r"), "RECEIPT r"),
    *rows(OLD_ACK_MODES, "another", subscribe("/queue/q", "ack:never", "receipt:r"), *error("Invalid header", "r")),
    *rows("UNSUBSCRIBE: no more messages are delivered", "after some were delivered",
          subscribe("/queue/q") + send("/queue/q") + unsubscribe("receipt:r") + send("/queue/q"),
          HEARD, "RECEIPT r"),
    *rows(ID_OF_ONE, "none", frame("UNSUBSCRIBE", "destination:/queue/q", "receipt:r"), *error("Missing Header", "r")),
    *rows(ID_OF_ONE, "of nothing", unsubscribe("receipt:r"), *error("No subscription found", "r")),
    *rows(ID_OF_ONE, "of one that ended", subscribe("/queue/q") + unsubscribe() + unsubscribe("receipt:r"),
          *error("No subscription found", "r")),
    *rows(ID_OR_DESTINATION, "an id", subscribe("/queue/q") + unsubscribe("receipt:r") + send("/queue/q"), "RECEIPT r"),
    *rows(ID_OR_DESTINATION, "a destination",
          frame("SUBSCRIBE", "destination:/queue/q") + frame("UNSUBSCRIBE", "destination:/queue/q", "receipt:r"),
          "RECEIPT r"),
    *rows(ID_OR_DESTINATION, "neither", frame("UNSUBSCRIBE", "receipt:r"), *error("Missing destination or id", "r")),
    *rows(ID_OR_DESTINATION, "a destination without a subscription",
          frame("UNSUBSCRIBE", "destination:/queue/q", "receipt:r"), *error("No subscription found", "r")),
    *rows(MESSAGE_ID, "none", frame("ACK", "subscription:s", "receipt:r"), *error("Missing header", "r")),
    *rows(MESSAGE_ID, "of nothing", frame("ACK", "subscription:s", "message-id:1", "receipt:r"),
          *error("Invalid header", "r")),
    *rows(ACK_ID, "none", frame("ACK", "receipt:r"), *error("Missing header", "r")),
    *rows(ACK_ID, "of nothing", frame("ACK", "id:1", "receipt:r"), *error("Invalid header", "r")),
    *rows(NACKS_LIKE_ACKS, "none", frame("NACK", "receipt:r"), *error("Missing header", "r")),
    *rows(NACKS_LIKE_ACKS, "of nothing", frame("NACK", "id:1", "message-id:1", "subscription:s", "receipt:r"),
          *error("Invalid header", "r")),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), RECEIVING)
def test_a_subscribe_is_answered(gateway: Gateway, version: str, sent: bytes, received: list[str]) -> None:
    assert gateway.client(version).request(sent) == received


def waiting_for_acks(gateway: Gateway, version: str, mode: str, count: int = 3) -> Client:
    """Return a client with ``count`` unacknowledged messages, ``'0'`` and up."""
    client = gateway.client(version)
    client.request(
        *(send("/queue/q", body=b"%d" % number) for number in range(count)), subscribe("/queue/q", f"ack:{mode}")
    )
    assert len(client.messages) == count
    return client


def left_by(gateway: Gateway, client: Client) -> list[str]:
    """Return the messages in the queue after the client has disconnected."""
    client.lose()
    return gateway.client("1.2").request(subscribe("/queue/q", "ack:client", id="left"))


@states(CANNOT_SUBSCRIBE)
def test_a_subscribe_without_read_permission_is_refused(gateway: Gateway, version: str) -> None:
    gateway.add_user("writer", "secret", may=(".*", ".*", ""))
    client = gateway.new_client(version)
    client.request(connect(version, login="writer", passcode="secret"))
    assert client.request(subscribe("/queue/q", "receipt:r")) == list(error("access_refused", "r"))


@states("SUBSCRIBE: selector may be supported")
def test_a_selector_filters_messages_when_activemq_is_enabled(version: str) -> None:
    client = Gateway(activemq=True).client(version)
    client.request(subscribe("/topic/t", "selector:size > 10 AND colour = 'blue'"))
    sizes = [("9", "blue"), ("11", "blue"), ("12", "red")]
    sent = [send("/topic/t", f"size:{size}", f"colour:{colour}") for size, colour in sizes]
    assert client.request(*sent) == ["MESSAGE s /topic/t 'hi' size=11 colour=blue"]
    assert client.request(subscribe("/topic/t", "selector:size >", "receipt:r", id="x")) == list(
        error("Invalid selector", "r")
    )


@states("SUBSCRIBE: ack is auto by default")
def test_the_default_ack_mode_is_auto(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.request(send("/queue/q"), subscribe("/queue/q"))
    assert left_by(gateway, client) == []


@states("SUBSCRIBE: auto: consumed when it is sent")
def test_a_message_for_an_auto_subscription_is_not_redelivered(gateway: Gateway, version: str) -> None:
    assert left_by(gateway, waiting_for_acks(gateway, version, "auto")) == []


@states(NOT_BEFORE_THE_ACK)
def test_unacknowledged_messages_are_redelivered_to_another_client(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client")
    client.ack(0)
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '1' again", "MESSAGE left /queue/q '2' again"]


@states(NOT_BEFORE_THE_ACK)
def test_acknowledged_messages_are_not_redelivered_when_the_subscription_ends(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client")
    assert client.request(unsubscribe(), client.acknowledgement("ACK", 1, "receipt:r")) == ["RECEIPT r"]
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '2' again"]


@states("SUBSCRIBE: client: ACK is cumulative within the subscription")
def test_an_ack_in_client_mode_is_cumulative(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client")
    client.ack(1)
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '2' again"]


@states("SUBSCRIBE: client: ACK is cumulative within the subscription")
def test_an_ack_does_not_affect_another_subscription(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client", count=1)
    client.request(send("/queue/other"), subscribe("/queue/other", "ack:client", id="o"))
    client.ack(1)
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '0' again"]


@states("SUBSCRIBE: client-individual: ACK and NACK are not cumulative")
def test_an_individual_ack_settles_one_message(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client-individual")
    client.ack(1)
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '0' again", "MESSAGE left /queue/q '2' again"]


@states("SUBSCRIBE: client-individual: ACK and NACK are not cumulative")
def test_an_individual_nack_settles_one_message(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client-individual")
    client.nack(1, "requeue:false")
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '0' again", "MESSAGE left /queue/q '2' again"]


@states("UNSUBSCRIBE: no more messages are delivered")
def test_messages_after_unsubscribe_stay_in_the_queue(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    assert client.request(subscribe("/queue/q"), unsubscribe(), send("/queue/q", "receipt:r")) == ["RECEIPT r"]
    assert gateway.ready("q") == 1


@states(MESSAGE_ID)
def test_a_message_is_acknowledged_once_by_its_message_id(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client-individual" if version == "1.1" else "client", count=1)
    assert client.ack(0, "receipt:a") == ["RECEIPT a"]
    assert client.ack(0, "receipt:b") == list(error("Message not found", "b"))


@states(ACK_ID)
def test_a_message_is_acknowledged_once_by_its_ack(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client-individual", count=1)
    assert client.ack(0, "receipt:a") == ["RECEIPT a"]
    assert client.ack(0, "receipt:b") == list(error("Message not found", "b"))


@states("ACK: subscription is required")
def test_the_message_id_identifies_the_subscription(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client", count=1)
    message_id = client.messages[0].headers["message-id"]
    assert f"T_{client.messages[0].headers['subscription']}@@" in message_id
    assert client.request(frame("ACK", f"message-id:{message_id}", "receipt:r")) == ["RECEIPT r"]


@states("NACK: the message was not consumed")
def test_a_nack_requeues_the_message_for_another_client(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client-individual", count=1)
    other = gateway.client(version)
    other.request(subscribe("/queue/q", "ack:client", id="o"))
    assert client.request(unsubscribe(), client.acknowledgement("NACK", 0)) == []
    assert other.request() == ["MESSAGE o /queue/q '0' again"]


@states("NACK: the message was not consumed")
def test_a_nack_without_requeue_dead_letters_the_message(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    dead = "x-dead-letter-exchange:amq.fanout"
    client.request(subscribe("/exchange/amq.fanout", id="dead"), subscribe("/queue/q", dead, "ack:client"))
    client.request(send("/queue/q"))
    [buried] = [
        received
        for received in client.request_frames(client.acknowledgement("NACK", 0, "requeue:false"))
        if received.verb == "MESSAGE"
    ]
    assert str(buried).startswith("MESSAGE dead /exchange/amq.fanout/q 'hi'")
    assert '"reason":"rejected"' in buried.headers["x-death"]


@states("NACK: it applies to one message, or to all before it")
@pytest.mark.parametrize(("mode", "left"), [("client", ["2"]), ("client-individual", ["0", "2"])])
def test_a_nack_settles_the_same_messages_as_an_ack(gateway: Gateway, version: str, mode: str, left: list[str]) -> None:
    client = waiting_for_acks(gateway, version, mode)
    client.nack(1, "requeue:false")
    assert left_by(gateway, client) == [f"MESSAGE left /queue/q '{body}' again" for body in left]


# ---------------------------------------------------------------- MESSAGE

DESTINATIONS = ["/queue/a.b", "/queue/a%2Fb", "/topic/a.b", "/exchange/amq.direct/k"]


@pytest.mark.parametrize("destination", DESTINATIONS)
@states("MESSAGE: destination is equal to that of the SEND")
def test_a_message_has_the_destination_of_its_send(gateway: Gateway, version: str, destination: str) -> None:
    client = gateway.client(version)
    assert client.request(subscribe(destination), send(destination)) == [f"MESSAGE s {destination} 'hi'"]


@states("MESSAGE: message-id is unique")
def test_message_ids_are_unique(gateway: Gateway, version: str) -> None:
    clients = [gateway.client(version) for _ in range(2)]
    for client in clients:
        client.request(subscribe("/topic/t", id="a"), subscribe("/topic/t", id="b"))
    for _ in range(2):
        clients[0].request(send("/topic/t"))
        clients[1].request()
    clients[0].request(unsubscribe(id="a"), subscribe("/topic/t", id="a"), send("/topic/t"))
    ids = [message.headers["message-id"] for client in clients for message in client.messages]
    assert len(ids) == len(set(ids)) == 10


@states("MESSAGE: subscription is the id of the SUBSCRIBE")
def test_a_message_has_the_id_of_its_subscription(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.request(subscribe("/topic/t", id="one"), subscribe("/topic/t", id="two"), send("/topic/t"))
    assert [message.headers["subscription"] for message in client.messages] == ["one", "two"]


@states("MESSAGE: ack is present when an ACK is required")
@pytest.mark.parametrize(("mode", "has_ack"), [("auto", False), ("client", True), ("client-individual", True)])
def test_a_message_has_an_ack_header_if_it_needs_an_ack(
    gateway: Gateway, version: str, mode: str, has_ack: bool
) -> None:
    client = waiting_for_acks(gateway, version, mode, count=1)
    assert ("ack" in client.messages[0].headers) is has_ack


@pytest.mark.parametrize("body", [b"", b"text", "größe".encode(), bytes(range(256)), b"x" * 100_000], ids=len)
@states("MESSAGE: the body is equal to that of the SEND")
def test_a_body_is_delivered_unchanged(gateway: Gateway, version: str, body: bytes) -> None:
    client = gateway.client(version)
    [message] = client.request_frames(subscribe("/queue/q"), send("/queue/q", f"content-length:{len(body)}", body=body))
    assert message.body == body
