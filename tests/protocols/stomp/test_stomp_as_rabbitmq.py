"""Compatibility with RabbitMQ: exact ERROR frames, booleans, receipts and durable subscriptions.

The texts were taken from RabbitMQ 3.10.8.
"""

import pytest

from gateway_stomp.versions import SUPPORTED
from tests.protocols.stomp.dialogue import Client, Gateway, frame, receipt
from tests.protocols.stomp.frame_reader import ReceivedFrame

TYPES = "Valid destination types are: /temp-queue, /exchange, /topic, /queue, /amq/queue, /reply-queue/.\n"

#: Verb, destination, message and body of the ERROR.
DESTINATIONS = [
    ("SEND", "/queue", "Invalid destination", "'' is not a valid queue destination\n"),
    ("SEND", "/queue/", "Invalid destination", "'/' is not a valid queue destination\n"),
    ("SUBSCRIBE", "/queue/a/b", "Invalid destination", "'/a/b' is not a valid queue destination\n"),
    ("SEND", "/topic", "Invalid destination", "'' is not a valid topic destination\n"),
    ("SUBSCRIBE", "/topic/bah/baz", "Invalid destination", "'/bah/baz' is not a valid topic destination\n"),
    ("SEND", "/exchange", "Invalid destination", "'' is not a valid exchange destination\n"),
    ("SEND", "/exchange//foo", "Invalid destination", "'//foo' is not a valid exchange destination\n"),
    ("SEND", "/exchange/bah/baz/boo", "Invalid destination", "'/bah/baz/boo' is not a valid exchange destination\n"),
    ("SEND", "/amq/queue/", "Invalid destination", "'/' is not a valid amqqueue destination\n"),
    ("SEND", "/reply-queue", "Unknown destination", f"'/reply-queue' is not a valid destination.\n{TYPES}"),
    ("SEND", "/reply-queue/", "Invalid destination", "'/' is not a valid reply_queue destination\n"),
    ("SEND", "/temp-queue/x/y", "Invalid destination", "'/x/y' is not a valid temp_queue destination\n"),
    ("SEND", "/temp-queue/x", "Invalid destination", "'/temp-queue/x' is not a valid destination for 'SEND'\n"),
    (
        "SUBSCRIBE",
        "/temp-queue/x",
        "Invalid destination",
        "'/temp-queue/x' is not a valid destination for 'SUBSCRIBE'\n",
    ),
    ("SEND", "/something", "Unknown destination", f"'/something' is not a valid destination.\n{TYPES}"),
    ("SEND", "", "Invalid destination", "Destination cannot be blank"),
    ("SEND", "/exchange/x/k", "not_found", "NOT_FOUND - no exchange 'x' in vhost '/'"),
    ("SUBSCRIBE", "/exchange/x/k", "not_found", "NOT_FOUND - no exchange 'x' in vhost '/'"),
    ("SUBSCRIBE", "/amq/queue/nosuch", "not_found", "NOT_FOUND - no queue 'nosuch' in vhost '/'"),
    (
        "SEND",
        "/exchange/amq.rabbitmq.trace/k",
        "access_refused",
        "ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'",
    ),
    ("SEND", "amq.x", "access_refused", "ACCESS_REFUSED - queue name 'amq.x' contains reserved prefix 'amq.*'"),
]

#: A frame by its verb and headers, message and body of the ERROR.
FRAMES = [
    ("SEND", {}, "Missing destination", "\"SEND\" must include a 'destination' header\n"),
    ("SUBSCRIBE", {"id": "1"}, "Missing destination", "\"SUBSCRIBE\" must include a 'destination' header\n"),
    ("SEND", {"destination": "q", "message-id": "1"}, "Invalid header", "'message-id' is not allowed on 'SEND'.\n"),
    ("FOO", {}, "Bad command", 'Could not interpret command "FOO"\n'),
    (
        "UNSUBSCRIBE",
        {"id": "9"},
        "No subscription found",
        "UNSUBSCRIBE must refer to an existing subscription.\nSubscription to \"id='9'\" not found.\n",
    ),
    ("UNSUBSCRIBE", {"id": "/temp-queue/x"}, "Invalid id", "UNSUBSCRIBE 'id' may not start with /temp-queue/\n"),
    ("ACK", {}, "Missing header", '"ACK" must include the "id" header\n'),
    ("NACK", {"id": "junk"}, "Invalid header", '"NACK" must include a valid "id" header\n'),
    ("BEGIN", {}, "Missing transaction", "\"BEGIN\" must include a 'transaction' header\n"),
    ("COMMIT", {"transaction": "t"}, "Bad transaction", 'Invalid transaction identifier: "t"\n'),
    (
        "SEND",
        {"destination": "q", "user-id": "t"},
        "precondition_failed",
        "PRECONDITION_FAILED - user_id property set to 't' but authenticated user was 'guest'",
    ),
]

#: Headers of a CONNECT and the body of the ERROR.
LOGINS = [
    ({"passcode": "x"}, "Access refused for user 'guest'\n"),
    ({"login": "nob", "passcode": "x"}, "Access refused for user 'nob'\n"),
    ({"host": "nov"}, "Virtual host 'nov' access denied"),
    ({"login": "low", "passcode": "low"}, "Virtual host '/' access denied"),
]


def told(received: list[ReceivedFrame]) -> tuple[str, str]:
    """Return message and body of the ERROR that ended a connection."""
    error, closed = received
    assert (error.verb, error["version"], error["content-type"], closed.verb) == (
        "ERROR",
        SUPPORTED,
        "text/plain",
        "closed",
    )
    return error["message"], error.body.decode()


@pytest.mark.parametrize(("verb", "destination", "message", "body"), DESTINATIONS)
def test_a_destination_is_refused_in_rabbitmqs_words(verb: str, destination: str, message: str, body: str) -> None:
    received = Gateway().client().command(verb, {"destination": destination, "id": "1"})
    assert told(received) == (message, body)


@pytest.mark.parametrize(("verb", "headers", "message", "body"), FRAMES)
def test_a_frame_is_refused_in_rabbitmqs_words(verb: str, headers: dict[str, str], message: str, body: str) -> None:
    assert told(Gateway().client().command(verb, headers)) == (message, body)


@pytest.mark.parametrize(("headers", "body"), LOGINS)
def test_a_login_is_refused_in_rabbitmqs_words(headers: dict[str, str], body: str) -> None:
    gateway = Gateway()
    gateway.put_user("low", "low", vhost="other")
    assert told(gateway.new_client().connect(**headers)) == ("Bad CONNECT", body)


def test_versions_are_refused_in_rabbitmqs_words() -> None:
    received = Gateway().new_client().connect(accept_version="3.0")
    assert told(received) == ("Version mismatch", "Supported versions are 1.0,1.1,1.2\n")


def test_a_missing_permission_is_refused_in_rabbitmqs_words() -> None:
    gateway = Gateway()
    gateway.add_user("low", "low", ("^low", "^low", "^low"))
    received = gateway.client(login="low", passcode="low").subscribe("/queue/a")
    text = "ACCESS_REFUSED - access to queue 'a' in vhost '/' refused for user 'low'"
    assert told(received) == ("access_refused", text)


def test_a_deleted_queue_is_reported_in_rabbitmqs_words() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", "7")
    gateway.vhost.delete_queue(gateway.vhost.queue("q"))
    text = "The server has canceled a subscription.\nNo more messages will be delivered for \"id='7'\".\n"
    assert told(client.receive_frames()) == ("Server cancelled subscription", text)


# Virtual hosts


@pytest.mark.parametrize("host", ["/", "nov"])
def test_only_an_authenticated_user_learns_whether_a_virtual_host_exists(host: str) -> None:
    received = Gateway().new_client().connect(passcode="wrong", host=host)
    assert told(received) == ("Bad CONNECT", "Access refused for user 'guest'\n")


def test_a_login_to_a_missing_virtual_host_is_counted_as_failed() -> None:
    gateway = Gateway()
    gateway.new_client().connect(host="nov")
    logins = gateway.broker.connections.logins_by_protocol["stomp"]
    assert (logins.failed, logins.succeeded) == (1, 0)


# Receipts


def test_the_receipt_of_a_subscribe_comes_before_its_first_message() -> None:
    client = Gateway().client()
    client.publish("/queue/q", b"one")
    client.publish("/queue/q", b"two")
    received = client.subscribe("/queue/q", receipt="r")
    assert received[0] == receipt("r")
    assert [each.body for each in received[1:]] == [b"one", b"two"]


def test_the_receipt_comes_first_for_a_durable_queue_created_in_the_same_write() -> None:
    client = Gateway().client()
    send = frame("SEND", {"destination": "/queue/q"}, b"one")
    subscribe = frame("SUBSCRIBE", {"destination": "/queue/q", "id": "0", "receipt": "r"})
    assert [each.verb for each in client.request_frames(send + subscribe)] == ["RECEIPT", "MESSAGE"]


# Booleans


@pytest.mark.parametrize("yes", ["true", "True", "TRUE"])
def test_a_boolean_may_be_written_in_any_case(yes: str) -> None:
    gateway = Gateway()
    headers = {"durable": yes, "auto-delete": "False", "exclusive": "FALSE", "x-queue-type": "quorum"}
    assert gateway.client().publish("/queue/q", b"", {**headers, "receipt": "r"}) == [receipt("r")]
    queue = gateway.vhost.queue("q")
    assert (queue.is_durable, queue.is_auto_delete, queue.owner) == (True, False, None)


def test_a_message_is_persistent_in_any_case() -> None:
    gateway = Gateway()
    gateway.client().publish("/queue/q", b"kept", {"persistent": "TRUE"})
    (message,) = gateway.crashed().client().subscribe("/queue/q")
    assert (message.body, message["persistent"]) == (b"kept", "true")


@pytest.mark.parametrize("name", ["durable", "auto-delete", "exclusive", "persistent", "x-single-active-consumer"])
def test_a_value_other_than_true_and_false_is_refused(name: str) -> None:
    received = Gateway().client().publish("/queue/q", b"", {name: "yes"})
    text = f"PRECONDITION_FAILED - header '{name}' must be true or false, not 'yes'"
    assert told(received) == ("precondition_failed", text)


def test_requeue_may_be_written_in_any_case() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.subscribe("/queue/q", ack="client")
    (message,) = client.publish("/queue/q", b"one")
    client.settle("NACK", message, {"requeue": "False"})
    client.lose()
    assert not len(gateway.vhost.queue("q"))


# Durable subscriptions to exchanges


def reader(gateway: Gateway, destination: str, **headers: str) -> tuple[Client, list[ReceivedFrame]]:
    """Create a durable subscription under one id; return the client and the received frames."""
    client = gateway.client()
    return client, client.subscribe(destination, "reader", durable="True", auto_delete="False", **headers)


@pytest.mark.parametrize("destination", ["/exchange/amq.direct/news", "/exchange/amq.fanout"])
def test_a_durable_subscription_to_an_exchange_collects_messages_while_disconnected(destination: str) -> None:
    gateway = Gateway()
    first, _ = reader(gateway, destination)
    first.command("DISCONNECT")
    gateway.client().publish(destination, b"missed", {"persistent": "true"})
    _, received = reader(gateway.crashed(), destination)
    assert [message.body for message in received] == [b"missed"]


def test_durable_subscriptions_to_two_exchanges_with_one_id_have_two_queues() -> None:
    gateway = Gateway()
    reader(gateway, "/exchange/amq.direct/news")
    second, _ = reader(gateway, "/exchange/amq.topic/news")
    gateway.client().publish("/exchange/amq.direct/news", b"of direct")
    gateway.client().publish("/topic/news", b"of topic")
    assert second.bodies() == [b"of topic"]


def test_the_queue_that_rabbitmq_created_for_an_exchange_is_found() -> None:
    gateway = Gateway()
    vhost = gateway.vhost
    queue = vhost.declare_queue("stomp-subscription-4nVvzVGvGXmuH5JXuuSbkA", is_durable=True)
    vhost.bind(vhost.exchange("amq.direct"), queue, "news")
    reader(gateway, "/exchange/amq.direct/news")
    assert (len(vhost.queue_by_name), len(queue.consumers)) == (1, 1)


def test_unsubscribe_deletes_a_durable_subscription_to_an_exchange() -> None:
    gateway = Gateway()
    client, _ = reader(gateway, "/exchange/amq.direct/news")
    client.command("UNSUBSCRIBE", id="reader", durable="True")
    assert not gateway.vhost.queue_by_name
