"""stomp.py in all three versions of the protocol."""

from collections.abc import Callable, Iterator

import pytest

from tests.interop.stomp_clients.stomp_client import CONNECTIONS, Refused, Stomp
from tests.interop.stomp_clients.stomp_server import StompServer

Client = Callable[[], Stomp]


@pytest.fixture(params=CONNECTIONS)
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def client(stomp: Callable[..., Stomp], version: str) -> Client:
    """Connect a client of the version."""
    return lambda: stomp(version).connect()


@pytest.fixture
def queue(name: str, client: Client) -> Iterator[str]:
    """Return a unique queue destination; messages left in it are removed."""
    yield f"/queue/{name}"
    one = client()
    one.subscribe(f"/queue/{name}", id="leftovers")
    one.unsubscribe(id="leftovers")


def test_a_client_logs_in_and_disconnects(client: Client, version: str) -> None:
    one = client()
    assert one.welcome["version"] == version
    assert one.welcome["session"]
    one.disconnect()


def test_a_wrong_password_is_refused(stomp: Callable[..., Stomp], version: str) -> None:
    with pytest.raises(Refused, match="Bad CONNECT"):
        stomp(version).connect(password="wrong")


def test_an_unknown_virtual_host_is_refused(stomp: Callable[..., Stomp]) -> None:
    with pytest.raises(Refused, match="Bad CONNECT"):
        stomp("1.2", vhost="nowhere").connect()


BODIES = {"text": "hello", "other letters": "größe: 3 µm", "nothing": "", "every octet": bytes(range(256)) * 20}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_is_unchanged_after_a_queue(client: Client, queue: str, body: str | bytes) -> None:
    one = client()
    one.subscribe(queue)
    one.send(queue, body)
    message = one.next()
    assert message.body == (body.encode() if isinstance(body, str) else body)
    assert message.headers["destination"] == queue


def test_headers_are_unchanged_after_a_queue(client: Client, queue: str) -> None:
    one = client()
    one.subscribe(queue)
    sent = {"content-type": "application/json", "correlation-id": "c", "colour": "blue", "persistent": "true"}
    one.send(queue, "[]", **sent)
    headers = one.next().headers
    assert {name: headers[name] for name in sent} == sent
    assert headers["subscription"] == "s"


def test_headers_with_special_characters_are_unchanged(stomp: Callable[..., Stomp], queue: str) -> None:
    one = stomp("1.2").connect()
    one.subscribe(queue)
    one.send(queue, odd="a:b\\c\nd\re")
    assert one.next().headers["odd"] == "a:b\\c\nd\re"


def test_messages_are_delivered_in_order(client: Client, queue: str) -> None:
    one, other = client(), client()
    for number in range(50):
        one.connection.send(queue, str(number))
    one.send(queue, "last")
    other.subscribe(queue)
    assert other.bodies(51) == [*(str(number).encode() for number in range(50)), b"last"]


def test_an_ack_of_a_client_subscription_is_cumulative(client: Client, queue: str) -> None:
    one = client()
    for number in range(3):
        one.send(queue, str(number))
    one.subscribe(queue, ack="client")
    messages = [one.next() for _ in range(3)]
    one.ack(messages[1])
    one.disconnect()
    other = client()
    other.subscribe(queue)
    message = other.next()
    assert (message.body, message.headers["redelivered"]) == (b"2", "true")
    assert other.receives_nothing_more()


def test_an_ack_of_a_client_individual_subscription_is_for_one_message(client: Client, queue: str) -> None:
    one = client()
    for number in range(3):
        one.send(queue, str(number))
    one.subscribe(queue, ack="client-individual")
    messages = [one.next() for _ in range(3)]
    one.ack(messages[1])
    one.vanish()
    other = client()
    other.subscribe(queue)
    assert other.bodies(2) == [b"0", b"2"]
    assert other.receives_nothing_more()


@pytest.mark.parametrize("version", ["1.1", "1.2"], indirect=True)
def test_a_nack_requeues_a_message(client: Client, queue: str) -> None:
    one = client()
    one.send(queue)
    one.subscribe(queue, ack="client-individual")
    one.nack(one.next())
    again = one.next()
    assert again.headers["redelivered"] == "true"
    one.nack(again, requeue="false")
    assert one.receives_nothing_more()


def test_prefetch_limits_unacknowledged_messages(client: Client, queue: str) -> None:
    one = client()
    for number in range(3):
        one.send(queue, str(number))
    one.subscribe(queue, ack="client-individual", prefetch_count="1")
    first = one.next()
    assert one.receives_nothing_more()
    one.ack(first)
    assert one.next().body == b"1"


def test_an_aborted_transaction_sends_nothing_and_a_committed_one_everything(client: Client, queue: str) -> None:
    one = client()
    one.subscribe(queue)
    for body in ("aborted", "committed"):
        transaction = one.connection.begin()
        one.connection.send(queue, f"{body} 1", transaction=transaction)
        one.connection.send(queue, f"{body} 2", transaction=transaction)
        if body == "aborted":
            one.connection.abort(transaction)
        else:
            one.commit(transaction)
    assert one.bodies(2) == [b"committed 1", b"committed 2"]
    assert one.receives_nothing_more()


def test_an_acknowledgement_in_a_transaction_waits_for_the_commit(client: Client, queue: str) -> None:
    one = client()
    one.send(queue)
    one.subscribe(queue, ack="client-individual")
    message = one.next()
    transaction = one.connection.begin()
    one.ack(message, transaction)
    one.commit(transaction)
    one.disconnect()
    other = client()
    other.subscribe(queue)
    assert other.receives_nothing_more()


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [("{}.a", "{}.a", True), ("{}.*", "{}.a", True), ("{}.*", "{}.a.b", False), ("{}.#", "{}.a.b", True)],
)
def test_topic_patterns_match_as_in_amqp(client: Client, name: str, pattern: str, key: str, matches: bool) -> None:
    one = client()
    one.subscribe(f"/topic/{pattern.format(name)}")
    one.send(f"/topic/{key.format(name)}")
    if matches:
        assert one.next().headers["destination"] == f"/topic/{key.format(name)}"
    assert one.receives_nothing_more()


def test_every_subscriber_of_a_topic_gets_the_message(client: Client, name: str) -> None:
    clients = [client() for _ in range(3)]
    for one in clients:
        one.subscribe(f"/topic/{name}")
    clients[0].send(f"/topic/{name}", "all")
    assert [one.next().body for one in clients] == [b"all"] * 3


def test_sending_and_subscribing_to_an_exchange(client: Client, name: str) -> None:
    one = client()
    one.subscribe(f"/exchange/amq.direct/{name}")
    one.send(f"/exchange/amq.direct/{name}", "by key")
    message = one.next()
    assert (message.body, message.headers["destination"]) == (b"by key", f"/exchange/amq.direct/{name}")


def test_a_durable_subscription_stores_messages_while_its_client_is_offline(client: Client, name: str) -> None:
    one = client()
    one.subscribe(f"/topic/{name}", id=name, durable="true", auto_delete="false")
    one.disconnect()
    other = client()
    other.send(f"/topic/{name}", "meanwhile", persistent="true")
    again = client()
    again.subscribe(f"/topic/{name}", id=name, durable="true", auto_delete="false")
    assert again.next().body == b"meanwhile"
    again.unsubscribe(id=name, durable="true", auto_delete="false", destination=f"/topic/{name}")


def test_request_and_reply_by_temporary_queues(client: Client, queue: str) -> None:
    asker, answerer = client(), client()
    answerer.subscribe(queue)
    asker.send(queue, "question", reply_to="/temp-queue/answers")
    question = answerer.next()
    answerer.send(question.headers["reply-to"], "answer")
    answer = asker.next()
    assert (answer.body, answer.headers["subscription"]) == (b"answer", "/temp-queue/answers")


def test_unacknowledged_messages_of_a_lost_client_go_to_another(client: Client, queue: str) -> None:
    one, other = client(), client()
    one.send(queue)
    one.subscribe(queue, ack="client")
    one.next()
    one.vanish()
    other.subscribe(queue)
    assert other.next().headers["redelivered"] == "true"


def test_an_error_has_a_reason(client: Client) -> None:
    one = client()
    one.connection.send("/nonsense/x", "hi", receipt="r")
    failure = one.error()
    assert failure.headers["message"] == "Unknown destination"
    assert b"is not a valid destination" in failure.body


def test_an_error_closes_the_connection(client: Client) -> None:
    one = client()
    one.connection.send("/nonsense/x", "hi")
    one.wait_for_the_end()  # 1.2, "ERROR"; RabbitMQ keeps the connection


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_heart_beats_keep_an_idle_connection_open(stomp_server: StompServer, version: str) -> None:
    one = Stomp(stomp_server, version, heartbeats=(1000, 1000)).connect()
    try:
        for _ in range(4):
            one.beats.get(timeout=5)
        assert one.connection.is_connected()
    finally:
        one.close()


def test_headers_may_be_python_booleans(client: Client, name: str) -> None:
    one = client()
    declared = {"durable": True, "auto_delete": False, "x_queue_type": "quorum"}
    one.subscribe(f"/queue/{name}", ack="client-individual", **declared)  # type: ignore[arg-type]  # as users do
    one.send(f"/queue/{name}", persistent=True)  # type: ignore[arg-type]
    assert one.next().headers["persistent"] == "true"


def test_a_body_of_16_mib_is_unchanged_after_a_queue(client: Client, queue: str) -> None:
    one = client()
    body = bytes(range(256)) * 65_536
    one.subscribe(queue)
    one.send(queue, body)
    assert one.next().body == body


def test_a_durable_subscription_to_an_exchange_stores_messages_while_its_client_is_offline(
    client: Client, name: str
) -> None:
    wanted = {"id": name, "durable": True, "auto_delete": False}
    first = client()
    first.subscribe(f"/exchange/amq.direct/{name}", **wanted)  # type: ignore[arg-type]
    first.disconnect()
    client().send(f"/exchange/amq.direct/{name}", b"missed")
    second = client()
    second.subscribe(f"/exchange/amq.direct/{name}", **wanted)  # type: ignore[arg-type]
    assert second.next().body == b"missed"
    second.unsubscribe(id=name, durable=True)  # type: ignore[arg-type]
