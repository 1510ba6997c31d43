"""stomp.py with a gateway in ActiveMQ compatibility mode: selectors on queues and topics."""

from collections.abc import Callable, Iterator

import pytest

from tests.interop.stomp_clients.stomp_client import CONNECTIONS, Stomp
from tests.interop.stomp_clients.stomp_server import StompServer


@pytest.fixture(scope="module")
def activemq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StompServer]:
    """Run a gateway in that mode, with a small memory limit for messages."""
    settings = ("stomp.activemq=true", "queues.resident_messages=64", "queues.reserve=0")
    with StompServer.running(tmp_path_factory.mktemp("activemq"), *settings) as running:
        yield running


@pytest.fixture(params=CONNECTIONS)
def client(request: pytest.FixtureRequest, stomp: Callable[..., Stomp], activemq: StompServer) -> Callable[[], Stomp]:
    """Connect a client of each version, with its default host header."""
    return lambda: stomp(request.param, at=activemq, vhost="some.machine").connect()


def test_consumers_share_a_queue_by_their_selectors(client: Callable[[], Stomp], name: str) -> None:
    red, large, sender = client(), client(), client()
    red.subscribe(f"/queue/{name}", selector="colour = 'red'")
    large.subscribe(f"/queue/{name}", selector="colour <> 'red' AND size > 5")
    for number, colour in enumerate(["red", "blue"] * 6):
        sender.send(f"/queue/{name}", str(number), colour=colour, size=str(number))
    assert red.bodies(6) == [b"0", b"2", b"4", b"6", b"8", b"10"]
    assert large.bodies(3) == [b"7", b"9", b"11"]
    rest = client()
    rest.subscribe(f"/queue/{name}")
    assert rest.bodies(3) == [b"1", b"3", b"5"]
    assert rest.receives_nothing_more()


def test_a_reply_is_selected_from_a_shared_queue(client: Callable[[], Stomp], name: str) -> None:
    asker, answerer = client(), client()
    for number in range(500):
        answerer.connection.send(f"/queue/{name}", str(number), headers={"correlation-id": str(number)})
    answerer.send(f"/queue/{name}", "the answer", correlation_id="mine", persistent="true")
    asker.subscribe(f"/queue/{name}", ack="client-individual", selector="JMSCorrelationID = 'mine'")
    message = asker.next()
    assert message.body == b"the answer"
    asker.ack(message)
    assert asker.receives_nothing_more()


def test_freed_credit_delivers_the_next_matching_message(client: Callable[[], Stomp], name: str) -> None:
    one = client()
    for number in range(200):
        one.connection.send(f"/queue/{name}", str(number), headers={"number": str(number), "persistent": "true"})
    one.subscribe(f"/queue/{name}", ack="client-individual", selector="number BETWEEN 150 AND 152", prefetch_count="1")
    for expected in (b"150", b"151", b"152"):
        message = one.next()
        assert message.body == expected
        one.ack(message)
    assert one.receives_nothing_more()


def test_a_refused_message_may_go_to_another_consumer(client: Callable[[], Stomp], name: str) -> None:
    first, second = client(), client()
    first.subscribe(f"/queue/{name}", ack="client", selector="JMSRedelivered = FALSE")
    second.subscribe(f"/queue/{name}", ack="client", selector="JMSXDeliveryCount > 1")
    first.send(f"/queue/{name}", "hard")
    first.next()
    first.vanish()
    again = second.next()
    assert (again.body, again.headers["redelivered"]) == (b"hard", "true")


@pytest.mark.parametrize("destination", ["/queue", "/topic"])
def test_an_invalid_selector_is_refused(client: Callable[[], Stomp], name: str, destination: str) -> None:
    one = client()
    one.connection.subscribe(f"{destination}/{name}", id="s", headers={"selector": "colour ="})
    assert one.error().headers["message"] == "Invalid selector"
