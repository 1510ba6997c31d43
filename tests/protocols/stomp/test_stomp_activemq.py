"""The habits of ActiveMQ's clients, where the settings accept them."""

import pytest

from tests.protocols.stomp.dialogue import Client, Gateway
from tests.protocols.stomp.test_stomp_connecting import refusal


def client(**headers: str) -> tuple[Gateway, Client]:
    gateway = Gateway(activemq=True)
    return gateway, gateway.client(**headers)


def test_the_host_of_a_client_is_the_machine_it_connects_to() -> None:
    assert client(host="broker.example.org")[1].vhost_name == "/"


def test_prefetch_by_its_name_there() -> None:
    gateway, worker = client()
    told = {"id": "0", "destination": "/queue/q", "ack": "client", "activemq.prefetchSize": "1"}
    worker.say("SUBSCRIBE", told)
    gateway.publish("", "q")
    gateway.publish("", "q")
    assert len(worker.hear()) == 1


@pytest.mark.parametrize(
    ("destination", "sent", "comes"),
    [
        ("/topic/A.>", "/topic/A.B.C", True),
        ("/topic/A.>", "/topic/B.A", False),
        ("/topic/A.*", "/topic/A.B", True),
        ("/topic/A.*", "/topic/A.B.C", False),
        ("/topic/>", "/topic/A", True),
    ],
)
def test_wildcards_of_topics(destination: str, sent: str, comes: bool) -> None:
    _, reader = client()
    reader.subscribe(destination)
    assert len(reader.send(sent)) == comes


def test_a_queue_may_have_dots_in_its_name() -> None:
    gateway, worker = client()
    worker.send("/queue/A.B")
    assert list(gateway.vhost.queue_by_name) == ["A.B"]


@pytest.mark.parametrize(
    ("selector", "comes"),
    [
        ("colour = 'red'", True),
        ("colour = 'blue'", False),
        ("size > 5", True),
        ("size BETWEEN 1 AND 3", False),
        ("colour IN ('red', 'green') AND missing IS NULL", True),
        ("missing = 'x'", False),
        ("", True),
    ],
)
@pytest.mark.parametrize("ack", ["auto", "client"])
def test_a_selector_chooses_among_the_messages_of_a_topic(selector: str, comes: bool, ack: str) -> None:
    gateway, reader = client()
    reader.subscribe("/topic/t", selector=selector, ack=ack, prefetch_count="1")
    heard = reader.send("/topic/t", b"hi", {"colour": "red", "size": "7"})
    assert [message.body for message in heard] == [b"hi"] * comes
    (queue,) = gateway.vhost.queue_by_name.values()
    assert (len(queue), queue.unsettled) == (0, 1 if comes and ack == "client" else 0)


def test_what_is_passed_over_takes_no_credit() -> None:
    gateway, reader = client()
    reader.subscribe("/topic/t", selector="wanted = 'yes'", ack="client", prefetch_count="1")
    for wanted in ("no", "no", "yes", "no", "yes"):
        gateway.client().send("/topic/t", wanted.encode(), {"wanted": wanted})
    (first,) = reader.hear()
    (second,) = reader.settle("ACK", first)
    assert (first.body, second.body) == (b"yes", b"yes")


def test_a_text_that_is_no_selector_is_refused() -> None:
    assert refusal(client()[1].subscribe("/topic/t", selector="colour =")) == "Invalid selector"


def test_a_queue_is_not_chosen_from() -> None:
    assert refusal(client()[1].subscribe("/queue/q", selector="a = 'b'")) == "Invalid selector"


NAMED = {"id": "7", "destination": "/topic/news", "activemq.subscriptionName": "mine"}


def test_a_durable_subscription_goes_by_the_names_of_client_and_subscription() -> None:
    gateway, reader = client(client_id="reader")
    reader.say("SUBSCRIBE", NAMED)
    reader.say("DISCONNECT")
    gateway.client().send("/topic/news", b"missed", {"persistent": "true"})
    after = gateway.crashed()
    assert after.client(client_id="other").say("SUBSCRIBE", NAMED) == []
    (message,) = after.client(client_id="reader").say("SUBSCRIBE", {**NAMED, "id": "8"})
    assert (message["subscription"], message.body) == ("8", b"missed")


def test_it_is_for_one_topic_at_a_time() -> None:
    _, reader = client(client_id="reader")
    reader.say("SUBSCRIBE", NAMED)
    reader.say("UNSUBSCRIBE", id="7")
    reader.say("SUBSCRIBE", {**NAMED, "destination": "/topic/sport"})
    assert reader.send("/topic/news", b"old") == []
    assert [message.body for message in reader.send("/topic/sport", b"new")] == [b"new"]


def test_leaving_it_by_its_name_ends_it() -> None:
    gateway, reader = client(client_id="reader")
    reader.say("SUBSCRIBE", NAMED)
    reader.say("UNSUBSCRIBE", {"id": "7"})
    assert len(gateway.vhost.queue_by_name) == 1
    assert reader.say("UNSUBSCRIBE", NAMED) == []
    assert not gateway.vhost.queue_by_name


@pytest.mark.parametrize(
    "headers",
    [{"selector": "no selector at all ("}, {"activemq.prefetchSize": "x"}, {"activemq.subscriptionName": "mine"}],
)
def test_without_the_setting_none_of_it_means_anything(headers: dict[str, str]) -> None:
    gateway = Gateway()
    reader = gateway.client(client_id="reader")
    assert reader.say("SUBSCRIBE", {"id": "0", "destination": "/topic/A.>", **headers}) == []
    assert reader.send("/topic/A.B") == []
    (queue,) = gateway.vhost.queue_by_name.values()
    assert not queue.is_durable
