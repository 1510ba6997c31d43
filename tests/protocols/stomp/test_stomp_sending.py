"""SEND: destinations, message properties, and the time of the receipt."""

import pytest

from gateway.kernel.messages.message import Arguments, Properties
from gateway_stomp.state import State
from tests.protocols.stomp.dialogue import Gateway, frame, receipt
from tests.protocols.stomp.frame_reader import CLOSED
from tests.protocols.stomp.test_stomp_connecting import refusal


@pytest.mark.parametrize("destination", ["/queue/orders", "orders"])
def test_send_declares_a_queue(destination: str) -> None:
    gateway = Gateway()
    assert gateway.client().publish(destination, b"one") == []
    queue = gateway.vhost.queue("orders")
    assert len(queue) == 1
    assert (queue.is_durable, queue.is_auto_delete, queue.owner, dict(queue.arguments)) == (True, False, None, {})


def test_a_queue_is_declared_once_in_a_session() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.publish("/queue/q")
    gateway.vhost.delete_queue(gateway.vhost.queue("q"))
    assert client.publish("/queue/q") == []
    assert "q" not in gateway.vhost.queue_by_name


def test_a_destination_that_must_exist_is_not_declared() -> None:
    gateway = Gateway()
    assert gateway.client().publish("/amq/queue/q", b"lost") == []
    assert "q" not in gateway.vhost.queue_by_name
    gateway.vhost.declare_queue("q")
    gateway.client().publish("/amq/queue/q", b"kept")
    assert len(gateway.vhost.queue("q")) == 1


@pytest.mark.parametrize(
    ("destination", "exchange", "routing_key"),
    [
        ("/topic/a.b", "amq.topic", "a.b"),
        ("/exchange/amq.direct/k", "amq.direct", "k"),
        ("/exchange/amq.fanout", "amq.fanout", ""),
        ("/reply-queue/a", "", "a"),
        ("/amq/queue/a", "", "a"),
    ],
)
def test_messages_go_to_the_exchange_of_their_destination(destination: str, exchange: str, routing_key: str) -> None:
    gateway = Gateway()
    queue = gateway.vhost.declare_queue("a")
    if exchange:
        gateway.vhost.bind(gateway.vhost.exchange(exchange), queue, routing_key)
    gateway.client().publish(destination, b"hi")
    entry = queue.get()
    assert entry is not None
    assert (entry.message.exchange, entry.message.routing_key, entry.message.body) == (exchange, routing_key, b"hi")


def test_an_exchange_must_exist() -> None:
    assert refusal(Gateway().client().publish("/exchange/none/k")) == "not_found"


def test_a_send_to_an_internal_exchange_is_refused() -> None:
    assert refusal(Gateway().client().publish("/exchange/amq.rabbitmq.trace/k")) == "access_refused"


def test_a_queue_with_a_reserved_name_is_refused() -> None:
    assert refusal(Gateway().client().publish("/queue/amq.mine")) == "access_refused"


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_send_without_a_destination_is_refused(version: str) -> None:
    assert refusal(Gateway().client(version).command("SEND")) == "Missing destination"


def test_a_temporary_queue_is_not_a_destination_of_send() -> None:
    assert refusal(Gateway().client().publish("/temp-queue/x")) == "Invalid destination"


def test_a_message_id_in_a_send_is_refused() -> None:
    assert refusal(Gateway().client().publish("/queue/q", b"", {"message-id": "1"})) == "Invalid header"


def test_a_user_id_must_be_the_senders() -> None:
    gateway = Gateway()
    assert gateway.client().publish("/queue/q", b"", {"user-id": "guest"}) == []
    assert refusal(gateway.client().publish("/queue/q", b"", {"user-id": "other"})) == "precondition_failed"


@pytest.mark.parametrize("headers", [{"priority": "x"}, {"expiration": "x"}, {"timestamp": "x"}])
def test_invalid_properties_are_refused(headers: dict[str, str]) -> None:
    assert refusal(Gateway().client().publish("/queue/q", b"", headers)) == "precondition_failed"


def test_headers_can_set_queue_arguments() -> None:
    gateway = Gateway()
    asked = {
        "x-message-ttl": "60000",
        "x-max-length": " 10 ",
        "x-max-length-bytes": "1000",
        "x-expires": "1000",
        "x-max-priority": "5",
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "amq.topic",
        "x-dead-letter-routing-key": "dead",
        "x-queue-type": "classic",
    }
    gateway.client().publish("/queue/q", b"", asked)
    numbers = {"x-message-ttl": 60000, "x-max-length": 10, "x-max-length-bytes": 1000, "x-expires": 1000}
    assert gateway.vhost.queue("q").arguments == {**asked, **numbers, "x-max-priority": 5}


def test_invalid_arguments_are_refused() -> None:
    assert refusal(Gateway().client().publish("/queue/q", b"", {"x-message-ttl": "soon"})) == "precondition_failed"
    assert refusal(Gateway().client().publish("/queue/q", b"", {"x-queue-type": "odd"})) == "precondition_failed"


def test_an_existing_queue_must_have_the_requested_settings() -> None:
    gateway = Gateway()
    gateway.vhost.declare_queue("q", is_durable=True, arguments={"x-max-length": 5})
    assert refusal(gateway.client().publish("/queue/q")) == "precondition_failed"
    assert gateway.client().publish("/queue/q", b"", {"x-max-length": "5"}) == []
    assert gateway.client().publish("/amq/queue/q") == []


def test_a_transient_queue_is_exclusive_by_default() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.publish("/queue/q", b"", {"durable": "false"})
    queue = gateway.vhost.queue("q")
    assert (queue.is_durable, queue.is_auto_delete, queue.owner) == (False, True, client.machine)
    client.lose()
    assert "q" not in gateway.vhost.queue_by_name


def test_a_transient_queue_may_be_shared_on_request() -> None:
    gateway = Gateway()
    gateway.client().publish("/queue/q", b"", {"durable": "false", "auto-delete": "false", "exclusive": "false"})
    queue = gateway.vhost.queue("q")
    assert (queue.is_durable, queue.is_auto_delete, queue.owner) == (False, False, None)


def test_the_persistent_header_of_a_send_does_not_concern_the_queue() -> None:
    gateway = Gateway()
    gateway.client().publish("/queue/q", b"", {"persistent": "false"})
    assert gateway.vhost.queue("q").is_durable


# Receipts


def test_a_receipt_is_sent_when_the_message_is_durable() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.publish("/queue/q")
    client.machine.receive(frame("SEND", {"destination": "/queue/q", "persistent": "true", "receipt": "r"}, b"kept"))
    assert client.receive_now() == []
    assert client.receive_frames() == [receipt("r")]
    assert len(gateway.crashed().vhost.queue("q")) == 1


def test_the_receipt_of_a_transient_message_does_not_wait_for_the_disk() -> None:
    client = Gateway().client()
    client.publish("/queue/q")
    client.machine.receive(frame("SEND", {"destination": "/queue/q", "receipt": "r"}))
    assert client.receive_now() == ["RECEIPT r"]


def test_an_unroutable_message_has_a_receipt() -> None:
    assert Gateway().client().publish("/topic/unbound", b"", {"receipt": "r"}) == [receipt("r")]


def test_a_message_that_a_queue_refuses_has_no_receipt() -> None:
    gateway = Gateway()
    client = gateway.client()
    full = {"x-max-length": "1", "x-overflow": "reject-publish"}
    assert client.publish("/queue/q", b"1", {**full, "receipt": "1"}) == [receipt("1")]
    assert client.publish("/queue/q", b"2", {"receipt": "2"}) == []
    assert client.publish("/queue/r", b"3", {"receipt": "3"}) == [receipt("3")]


def test_receipts_come_in_the_order_of_the_messages() -> None:
    client = Gateway().client()
    sends = [
        frame("SEND", {"destination": "/queue/q", "receipt": str(number), "persistent": str(number % 2 == 0).lower()})
        for number in range(10)
    ]
    assert client.request_frames(b"".join(sends)) == [receipt(str(number)) for number in range(10)]


def test_receipts_come_before_the_connection_ends() -> None:
    gateway = Gateway()
    client = gateway.client()
    send = frame("SEND", {"destination": "/queue/q", "persistent": "true", "receipt": "1"}, b"kept")
    client.machine.receive(send + frame("DISCONNECT", {"receipt": "2"}))
    assert client.receive_now() == []
    assert client.machine.state is State.LEAVING
    assert client.receive_frames() == [receipt("1"), receipt("2"), CLOSED]


def test_a_refused_message_does_not_keep_the_connection_from_ending() -> None:
    client = Gateway().client()
    client.publish("/queue/q", b"1", {"x-max-length": "1", "x-overflow": "reject-publish"})
    client.machine.receive(frame("SEND", {"destination": "/queue/q", "receipt": "1"}) + frame("DISCONNECT"))
    assert client.receive_frames() == [CLOSED]


def test_a_refused_message_that_another_queue_stores_does_not_keep_the_connection_from_ending() -> None:
    gateway = Gateway()
    full: Arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    for name in ("kept", "full"):
        queue = gateway.vhost.declare_queue(name, is_durable=True, arguments=full if name == "full" else {})
        gateway.vhost.bind(gateway.vhost.exchange("amq.fanout"), queue, "")
    client = gateway.client()
    told = {"destination": "/exchange/amq.fanout", "persistent": "true", "receipt": "1"}
    client.machine.receive(frame("SEND", told) + frame("DISCONNECT"))
    assert client.receive_now() == []
    assert client.receive_frames() == [CLOSED]


def test_an_error_has_the_receipt_id_of_its_frame() -> None:
    received = Gateway().client().publish("/nowhere/x", b"", {"receipt": "r:1"})
    assert refusal(received) == "Unknown destination"
    assert received[0]["receipt-id"] == "r:1"


def test_no_receipt_is_sent_after_a_failure_of_the_store() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.machine.receive(frame("SEND", {"destination": "/queue/q", "persistent": "true", "receipt": "1"}))
    gateway.end_turn()
    client.fail_confirms()
    assert client.receive_frames() == []


# Other protocols


def test_other_protocols_receive_the_published_headers() -> None:
    gateway = Gateway()
    gateway.client().publish("/queue/q", b"{}", {"content-type": "application/json", "persistent": "true", "a": "b"})
    entry = gateway.vhost.queue("q").get()
    assert entry is not None
    assert entry.is_durable
    assert entry.message.properties == Properties(content_type="application/json", delivery_mode=2, headers={"a": "b"})


def test_stored_messages_are_restored_unchanged() -> None:
    gateway = Gateway()
    sent = {"content-type": "text/plain", "persistent": "true", "odd:name": "odd\\value"}
    gateway.client().publish("/queue/q", b"kept", sent)
    after = gateway.crashed()
    client = after.client()
    (message,) = client.subscribe("/queue/q")
    assert message.body == b"kept"
    assert sent.items() <= message.headers.items()


# Replies


def test_a_temporary_queue_receives_replies() -> None:
    gateway = Gateway()
    asker, server = gateway.client(), gateway.client()
    server.subscribe("/queue/rpc")
    assert asker.publish("/queue/rpc", b"2+2", {"reply-to": "/temp-queue/mine"}) == []
    (request,) = server.receive_frames()
    assert request["reply-to"].startswith("/reply-queue/stomp.gen-")
    server.publish(request["reply-to"], b"4", {"correlation-id": "c"})
    (reply,) = asker.receive_frames()
    assert (reply["subscription"], reply.body, reply["correlation-id"]) == ("/temp-queue/mine", b"4", "c")


def test_one_temporary_queue_serves_all_requests_of_its_id() -> None:
    gateway = Gateway()
    client = gateway.client()
    for number in range(3):
        client.publish("/queue/rpc", b"", {"reply-to": "/temp-queue/mine", "number": str(number)})
    assert sum(name.startswith("stomp.gen-") for name in gateway.vhost.queue_by_name) == 1


def test_a_temporary_queue_ends_with_its_connection() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.publish("/queue/rpc", b"", {"reply-to": "/temp-queue/mine"})
    client.command("DISCONNECT")
    assert list(gateway.vhost.queue_by_name) == ["rpc"]


@pytest.mark.parametrize("reply_to", ["/queue/answers", "/topic/answers", "answers"])
def test_another_reply_to_is_unchanged(reply_to: str) -> None:
    gateway = Gateway()
    gateway.client().publish("/queue/rpc", b"", {"reply-to": reply_to})
    entry = gateway.vhost.queue("rpc").get()
    assert entry is not None
    assert entry.message.properties.reply_to == reply_to


def test_an_invalid_reply_to_is_refused() -> None:
    assert refusal(Gateway().client().publish("/queue/rpc", b"", {"reply-to": "/nowhere"})) == "Unknown destination"


def test_a_message_of_another_protocol_can_be_answered() -> None:
    gateway = Gateway()
    server = gateway.client()
    server.subscribe("/queue/rpc")
    answers = gateway.vhost.declare_queue("answers")
    gateway.publish("", "rpc", b"?", Properties(reply_to="answers"))
    (request,) = server.receive_frames()
    assert server.publish(request["reply-to"], b"!") == []
    assert len(answers) == 1


def test_dead_letters_have_x_death_headers() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/topic/dead.#", "dead")
    client.publish(
        "/queue/q",
        b"late",
        {
            "x-dead-letter-exchange": "amq.topic",
            "x-dead-letter-routing-key": "dead.q",
            "expiration": "1000",
            "colour": "red",
        },
    )
    gateway.advance(2)
    (letter,) = client.receive_frames()
    assert (letter["destination"], letter.body, letter["colour"]) == ("/topic/dead.q", b"late", "red")
    assert (letter["x-first-death-queue"], letter["x-first-death-reason"]) == ("q", "expired")
    assert '"original-expiration":"1000"' in letter["x-death"]
    assert "expiration" not in letter.headers


def test_a_message_may_be_delayed() -> None:
    gateway = Gateway()
    gateway.vhost.declare_queue("q", is_durable=True, arguments={"x-delayed-delivery": True})
    client = gateway.client()
    client.subscribe("/amq/queue/q")
    assert client.publish("/amq/queue/q", b"later", {"x-delay": "5000"}) == []
    gateway.advance(5)
    assert client.bodies() == [b"later"]


def test_publishes_are_counted() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", ack="client-individual")
    client.publish("/queue/q", b"1", {"receipt": "1"})
    client.publish("/topic/unbound")
    (info,) = client.channels()
    assert (info.counters.publish, info.counters.deliver, info.unacknowledged) == (2, 1, 1)
    assert (info.confirmed, info.unroutable, len(info.consumers)) == (1, 1, 1)


def test_a_client_in_the_middle_of_a_large_body_counts_as_a_publisher() -> None:
    client = Gateway().client()
    send = frame("SEND", {"destination": "/queue/q"}, bytes(1_000_000))
    client.request_frames(send[:60_000])
    assert not client.machine.has_published
    client.request_frames(send[60_000:90_000])
    assert client.machine.has_published, "alarms must apply before the message is complete"


@pytest.mark.parametrize("size", [16 * 2**20, 16 * 2**20 + 1])
def test_a_body_is_limited_to_16_mib(size: int) -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q")
    received = client.publish("/queue/q", bytes(size))
    if size > 16 * 2**20:
        assert (received[0]["message"], received[0].body) == (
            "Frame too large",
            b"A body of 16777217 bytes; the limit is 16777216",
        )
    else:
        assert [len(message.body) for message in received] == [size]


@pytest.mark.parametrize("length", [[], ["content-length:301"]], ids=["until a NUL", "announced"])
def test_the_limit_of_a_body_can_be_set(length: list[str]) -> None:
    client = Gateway(max_body_size=300).client()
    head = "\n".join(["SEND", "destination:/queue/q", *length])
    (error, _) = client.request_frames(head.encode() + b"\n\n" + b"x" * 301 + b"\0")
    assert error.body == b"A body of 301 bytes; the limit is 300"


def test_the_limit_of_one_header_can_be_set() -> None:
    client = Gateway(max_header_size=300).client()
    assert client.publish("/queue/q", b"", {"h": "x" * 298}) == []
    (error, _) = client.publish("/queue/q", b"", {"h": "x" * 299})
    assert (error["message"], error.body) == ("Invalid frame", b"A header of 301 characters; the limit is 300")
