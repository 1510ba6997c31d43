"""Permissions of a user: destinations require the same permissions as the AMQP operations behind them."""

import pytest

from gateway_stomp.state import State
from tests.protocols.stomp.dialogue import Client, Gateway
from tests.protocols.stomp.test_stomp_connecting import refusal

#: Patterns for configure, write and read.
May = tuple[str, str, str]


def someone(may: May) -> tuple[Gateway, Client]:
    gateway = Gateway()
    gateway.vhost.declare_queue("there", is_durable=True)
    gateway.add_user("ann", "secret", may)
    return gateway, gateway.client(login="ann", passcode="secret")


SUBSCRIPTION = "^stomp-subscription-"


@pytest.mark.parametrize(
    ("verb", "destination", "may", "is_allowed"),
    [
        ("SEND", "/queue/q", ("^q$", "^amq.default$", ""), True),
        ("SEND", "/queue/q", ("", "^amq.default$", ""), False),
        ("SEND", "/queue/q", ("^q$", "", ""), False),
        ("SEND", "/amq/queue/there", ("", "^amq.default$", ""), True),
        ("SEND", "/topic/t", ("", "^amq.topic$", ""), True),
        ("SEND", "/topic/t", (".*", "", ".*"), False),
        ("SEND", "/exchange/amq.direct/k", ("", "^amq.direct$", ""), True),
        ("SEND", "/exchange/amq.direct/k", ("", "^amq.topic$", ""), False),
        ("SUBSCRIBE", "/queue/q", ("^q$", "", "^q$"), True),
        ("SUBSCRIBE", "/queue/q", ("", "", "^q$"), False),
        ("SUBSCRIBE", "/queue/q", ("^q$", "", ""), False),
        ("SUBSCRIBE", "/amq/queue/there", ("", "", "^there$"), True),
        ("SUBSCRIBE", "/amq/queue/there", (".*", ".*", ""), False),
        ("SUBSCRIBE", "/topic/t", (SUBSCRIPTION, SUBSCRIPTION, f"{SUBSCRIPTION}|^amq.topic$"), True),
        ("SUBSCRIBE", "/topic/t", ("", SUBSCRIPTION, f"{SUBSCRIPTION}|^amq.topic$"), False),
        ("SUBSCRIBE", "/topic/t", (SUBSCRIPTION, "", f"{SUBSCRIPTION}|^amq.topic$"), False),
        ("SUBSCRIBE", "/topic/t", (SUBSCRIPTION, SUBSCRIPTION, SUBSCRIPTION), False),
        ("SUBSCRIBE", "/topic/t", (SUBSCRIPTION, SUBSCRIPTION, "^amq.topic$"), False),
    ],
)
def test_each_destination_requires_its_permissions(verb: str, destination: str, may: May, is_allowed: bool) -> None:
    gateway, client = someone(may)
    received = client.command(verb, id="0", destination=destination)
    if is_allowed:
        assert received == []
    else:
        assert refusal(received) == "access_refused"
        assert set(gateway.vhost.queue_by_name) == {"there"}


def test_a_temporary_queue_requires_configure_and_read() -> None:
    _, client = someone(("^q$|^stomp.gen-", ".*", "^stomp.gen-"))
    assert client.publish("/queue/q", b"", {"reply-to": "/temp-queue/x"}) == []
    _, client = someone(("^q$", ".*", "^stomp.gen-"))
    assert refusal(client.publish("/queue/q", b"", {"reply-to": "/temp-queue/x"})) == "access_refused"


def test_a_dead_letter_exchange_requires_write() -> None:
    _, client = someone((".*", "^amq.default$", ".*"))
    received = client.publish("/queue/q", b"", {"x-dead-letter-exchange": "amq.topic"})
    assert refusal(received) == "access_refused"


def test_deleting_a_durable_subscription_requires_configure() -> None:
    gateway, client = someone((".*", ".*", ".*"))
    client.subscribe("/topic/t", "0", durable="true")
    gateway.add_user("ann", "secret", ("", ".*", ".*"))
    assert refusal(client.command("UNSUBSCRIBE", id="0", durable="true")) == "access_refused"


@pytest.mark.parametrize(
    ("verb", "key", "is_allowed"),
    [("SEND", "ann.x", True), ("SEND", "bob.x", False), ("SUBSCRIBE", "news.x", True), ("SUBSCRIBE", "ann.x", False)],
)
def test_topics_may_be_restricted(verb: str, key: str, is_allowed: bool) -> None:
    gateway, client = someone((".*", ".*", ".*"))
    gateway.restrict_topics("ann", write="^{username}\\.", read="^news\\.")
    received = client.command(verb, id="0", destination=f"/topic/{key}")
    assert received == [] if is_allowed else refusal(received) == "access_refused"


def test_changed_permissions_apply_to_open_connections() -> None:
    gateway, client = someone((".*", ".*", ".*"))
    assert client.publish("/queue/q") == []
    gateway.add_user("ann", "secret", ("", "", ""))
    assert refusal(client.publish("/queue/q")) == "access_refused"
    assert client.machine.state is State.CLOSED
