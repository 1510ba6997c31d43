"""SUBSCRIBE and what it brings: MESSAGE frames, their acknowledgement, the end of a subscription."""

import pytest

from tests.conformance.stomp.dialogue import Client, Gateway
from tests.conformance.stomp.frames import connect, frame, send, subscribe, unsubscribe
from tests.conformance.stomp.tables import Row, error, rows, states

HEARD = "MESSAGE s /queue/q 'hi'"
CANNOT_SUBSCRIBE = "SUBSCRIBE: what cannot be created: ERROR, then close"
ID_REQUIRED = "SUBSCRIBE: id is required"
ID_OPTIONAL = "SUBSCRIBE: id is optional, and told in MESSAGE"
NAMED_APART = "SUBSCRIBE: different subscriptions have different ids"
ACK_MODES = "SUBSCRIBE: ack is one of auto, client and client-individual"
OLD_ACK_MODES = "SUBSCRIBE: ack is one of auto and client"
NOT_BEFORE_THE_ACK = "SUBSCRIBE: client: not consumed before the ACK"
ID_OF_ONE = "UNSUBSCRIBE: id is required, and that of a subscription"
ID_OR_DESTINATION = "UNSUBSCRIBE: id or destination is required"
MESSAGE_ID = "ACK: message-id is required, and that of a MESSAGE"
ACK_ID = "ACK: id is required, and the ack of a MESSAGE"
NACKS_LIKE_ACKS = "NACK: it takes the headers of ACK"

RECEIVING: list[Row] = [
    *rows("SUBSCRIBE: destination is required", "none", frame("SUBSCRIBE", "id:s", "receipt:r"),
          *error("Missing destination", "r")),
    *rows("SUBSCRIBE: messages are henceforth delivered as MESSAGE", "sent before and after",
          send("/queue/q") + subscribe("/queue/q") + send("/queue/q"), HEARD, HEARD),
    *rows("SUBSCRIBE: messages are henceforth delivered as MESSAGE", "a topic, sent before and after",
          send("/topic/t") + subscribe("/topic/t") + send("/topic/t"), "MESSAGE s /topic/t 'hi'"),
    *rows("SUBSCRIBE: messages are henceforth delivered as MESSAGE", "two subscriptions of one topic",
          subscribe("/topic/t", id="a") + subscribe("/topic/#", id="b") + send("/topic/t"),
          "MESSAGE a /topic/t 'hi'", "MESSAGE b /topic/t 'hi'"),
    *rows(CANNOT_SUBSCRIBE, "no such queue", subscribe("/amq/queue/nowhere", "receipt:r"), *error("not_found", "r")),
    *rows(CANNOT_SUBSCRIBE, "no such exchange", subscribe("/exchange/nowhere", "receipt:r"), *error("not_found", "r")),
    *rows(CANNOT_SUBSCRIBE, "nothing of the kind", subscribe("/nonsense", "receipt:r"),
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
    *rows("UNSUBSCRIBE: no more messages come", "they were coming",
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
    *rows(ID_OR_DESTINATION, "a destination nobody subscribed to",
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


@pytest.mark.parametrize(("version", "sent", "heard"), RECEIVING)
def test_what_is_asked_for_is_answered(gateway: Gateway, version: str, sent: bytes, heard: list[str]) -> None:
    assert gateway.client(version).tell(sent) == heard


def waiting_for_acks(gateway: Gateway, version: str, mode: str, count: int = 3) -> Client:
    """A client with as many messages, ``'0'`` and up, that it has not acknowledged."""
    client = gateway.client(version)
    client.tell(
        *(send("/queue/q", body=b"%d" % number) for number in range(count)), subscribe("/queue/q", f"ack:{mode}")
    )
    assert len(client.messages) == count
    return client


def left_by(gateway: Gateway, client: Client) -> list[str]:
    """What the queue holds once the client is gone."""
    client.lose()
    return gateway.client("1.2").tell(subscribe("/queue/q", "ack:client", id="left"))


@states(CANNOT_SUBSCRIBE)
def test_who_may_not_read_hears_so(gateway: Gateway, version: str) -> None:
    gateway.add_user("writer", "secret", may=(".*", ".*", ""))
    client = gateway.stranger(version)
    client.tell(connect(version, login="writer", passcode="secret"))
    assert client.tell(subscribe("/queue/q", "receipt:r")) == list(error("access_refused", "r"))


@states("SUBSCRIBE: selector may be supported")
def test_a_selector_chooses_in_the_mode_for_clients_of_activemq(version: str) -> None:
    client = Gateway(activemq=True).client(version)
    client.tell(subscribe("/topic/t", "selector:size > 10 AND colour = 'blue'"))
    sizes = [("9", "blue"), ("11", "blue"), ("12", "red")]
    sent = [send("/topic/t", f"size:{size}", f"colour:{colour}") for size, colour in sizes]
    assert client.tell(*sent) == ["MESSAGE s /topic/t 'hi' size=11 colour=blue"]
    assert client.tell(subscribe("/topic/t", "selector:size >", "receipt:r", id="x")) == list(
        error("Invalid selector", "r")
    )


@states("SUBSCRIBE: ack is auto by default")
def test_nothing_is_to_be_acknowledged_unless_asked_for(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.tell(send("/queue/q"), subscribe("/queue/q"))
    assert left_by(gateway, client) == []


@states("SUBSCRIBE: auto: consumed once it is sent")
def test_what_was_sent_to_an_auto_subscription_does_not_come_again(gateway: Gateway, version: str) -> None:
    assert left_by(gateway, waiting_for_acks(gateway, version, "auto")) == []


@states(NOT_BEFORE_THE_ACK)
def test_what_was_not_acknowledged_comes_again_to_another(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client")
    client.ack(0)
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '1' again", "MESSAGE left /queue/q '2' again"]


@states(NOT_BEFORE_THE_ACK)
def test_what_was_acknowledged_stays_so_though_the_subscription_ends(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client")
    assert client.tell(unsubscribe(), client.settled("ACK", 1, "receipt:r")) == ["RECEIPT r"]
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '2' again"]


@states("SUBSCRIBE: client: ACK is cumulative within the subscription")
def test_an_ack_is_for_all_before_it(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client")
    client.ack(1)
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '2' again"]


@states("SUBSCRIBE: client: ACK is cumulative within the subscription")
def test_an_ack_is_not_for_another_subscription(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client", count=1)
    client.tell(send("/queue/other"), subscribe("/queue/other", "ack:client", id="o"))
    client.ack(1)
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '0' again"]


@states("SUBSCRIBE: client-individual: ACK and NACK are not cumulative")
def test_an_individual_ack_is_for_one(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client-individual")
    client.ack(1)
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '0' again", "MESSAGE left /queue/q '2' again"]


@states("SUBSCRIBE: client-individual: ACK and NACK are not cumulative")
def test_an_individual_nack_is_for_one(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client-individual")
    client.nack(1, "requeue:false")
    assert left_by(gateway, client) == ["MESSAGE left /queue/q '0' again", "MESSAGE left /queue/q '2' again"]


@states("UNSUBSCRIBE: no more messages come")
def test_what_comes_afterwards_stays_in_the_queue(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    assert client.tell(subscribe("/queue/q"), unsubscribe(), send("/queue/q", "receipt:r")) == ["RECEIPT r"]
    assert gateway.waiting("q") == 1


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
def test_the_message_id_names_the_subscription_already(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client", count=1)
    message_id = client.messages[0].headers["message-id"]
    assert f"T_{client.messages[0].headers['subscription']}@@" in message_id
    assert client.tell(frame("ACK", f"message-id:{message_id}", "receipt:r")) == ["RECEIPT r"]


@states("NACK: the message was not consumed")
def test_a_nack_gives_the_message_back_for_another(gateway: Gateway, version: str) -> None:
    client = waiting_for_acks(gateway, version, "client-individual", count=1)
    other = gateway.client(version)
    other.tell(subscribe("/queue/q", "ack:client", id="o"))
    assert client.tell(unsubscribe(), client.settled("NACK", 0)) == []
    assert other.tell() == ["MESSAGE o /queue/q '0' again"]


@states("NACK: the message was not consumed")
def test_a_nack_may_give_the_message_up(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    dead = "x-dead-letter-exchange:amq.fanout"
    client.tell(subscribe("/exchange/amq.fanout", id="dead"), subscribe("/queue/q", dead, "ack:client"))
    client.tell(send("/queue/q"))
    [buried] = [heard for heard in client.ask(client.settled("NACK", 0, "requeue:false")) if heard.verb == "MESSAGE"]
    assert str(buried).startswith("MESSAGE dead /exchange/amq.fanout/q 'hi'")
    assert '"reason":"rejected"' in buried.headers["x-death"]


@states("NACK: it is about one message, or about all before it")
@pytest.mark.parametrize(("mode", "left"), [("client", ["2"]), ("client-individual", ["0", "2"])])
def test_a_nack_reaches_as_far_as_an_ack(gateway: Gateway, version: str, mode: str, left: list[str]) -> None:
    client = waiting_for_acks(gateway, version, mode)
    client.nack(1, "requeue:false")
    assert left_by(gateway, client) == [f"MESSAGE left /queue/q '{body}' again" for body in left]


# ---------------------------------------------------------------- MESSAGE

DESTINATIONS = ["/queue/a.b", "/queue/a%2Fb", "/topic/a.b", "/exchange/amq.direct/k"]


@pytest.mark.parametrize("destination", DESTINATIONS)
@states("MESSAGE: destination is that of the SEND")
def test_a_message_tells_where_it_was_sent(gateway: Gateway, version: str, destination: str) -> None:
    client = gateway.client(version)
    assert client.tell(subscribe(destination), send(destination)) == [f"MESSAGE s {destination} 'hi'"]


@states("MESSAGE: message-id is unique")
def test_no_message_id_comes_twice(gateway: Gateway, version: str) -> None:
    clients = [gateway.client(version) for _ in range(2)]
    for client in clients:
        client.tell(subscribe("/topic/t", id="a"), subscribe("/topic/t", id="b"))
    for _ in range(2):
        clients[0].tell(send("/topic/t"))
        clients[1].tell()
    clients[0].tell(unsubscribe(id="a"), subscribe("/topic/t", id="a"), send("/topic/t"))
    ids = [message.headers["message-id"] for client in clients for message in client.messages]
    assert len(ids) == len(set(ids)) == 10


@states("MESSAGE: subscription is that of the SUBSCRIBE")
def test_a_message_tells_whose_it_is(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.tell(subscribe("/topic/t", id="one"), subscribe("/topic/t", id="two"), send("/topic/t"))
    assert [message.headers["subscription"] for message in client.messages] == ["one", "two"]


@states("MESSAGE: ack is there where an ACK is wanted")
@pytest.mark.parametrize(("mode", "has_ack"), [("auto", False), ("client", True), ("client-individual", True)])
def test_a_message_says_how_to_acknowledge_it(gateway: Gateway, version: str, mode: str, has_ack: bool) -> None:
    client = waiting_for_acks(gateway, version, mode, count=1)
    assert ("ack" in client.messages[0].headers) is has_ack


@pytest.mark.parametrize("body", [b"", b"text", "größe".encode(), bytes(range(256)), b"x" * 100_000], ids=len)
@states("MESSAGE: the body is that of the SEND")
def test_a_body_arrives_as_it_was_sent(gateway: Gateway, version: str, body: bytes) -> None:
    client = gateway.client(version)
    [message] = client.ask(subscribe("/queue/q"), send("/queue/q", f"content-length:{len(body)}", body=body))
    assert message.body == body
