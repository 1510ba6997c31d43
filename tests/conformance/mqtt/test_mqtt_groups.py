"""Shared subscriptions: distribution over members, and QoS 2 deliveries of one member (4.8.2)."""

from itertools import chain

import pytest

from tests.conformance.mqtt.tables import Row, rows, statements
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import options, receive_maximum, subscription_identifier

NAMES: list[Row] = [
    *rows("a group", "4.8.2-1 4.8.2-2", "", lambda w: w.subscribe(("$share/g/t", 2)), "SUBACK #1 2"),
    *rows("a group with dots and signs", "4.8.2-1", "", lambda w: w.subscribe(("$share/g.*%é/t", 2)), "SUBACK #1 2"),
    *rows("a filter of wildcards", "4.8.2-2", "", lambda w: w.subscribe(("$share/g/+/#", 0)), "SUBACK #1 0"),
    *rows("a filter that begins with a separator", "4.8.2-2", "", lambda w: w.subscribe(("$share/g//t", 0)),
          "SUBACK #1 0"),
    *rows("no group", "4.8.2-1", "", lambda w: w.subscribe(("$share//t", 0)), "SUBACK #1 8f"),
    *rows("nothing", "4.8.2-1", "", lambda w: w.subscribe(("$share/", 0)), "SUBACK #1 8f"),
    *rows("no filter", "4.8.2-2", "", lambda w: w.subscribe(("$share/g", 0)), "SUBACK #1 8f"),
    *rows("a group with +", "4.8.2-2", "", lambda w: w.subscribe(("$share/+/t", 0)), "SUBACK #1 8f"),
    *rows("a group with #", "4.8.2-2", "", lambda w: w.subscribe(("$share/g#/t", 0)), "SUBACK #1 8f"),
    *rows("an invalid filter", "4.8.2-2", "", lambda w: w.subscribe(("$share/g/a#", 0)), "SUBACK #1 8f"),
    *rows("a topic that resembles one", "4.8.2-1", "", lambda w: w.subscribe(("$shared/g/t", 0)), "SUBACK #1 0"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), NAMES)
def test_a_shared_subscription_has_a_group_and_a_filter(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


def members(gateway: Gateway, *granted: int, count: int = 2, group: str = "g") -> list[Client]:
    """Return members of a group with persistent sessions: ``m0`` and so on of group ``g``."""
    name = "m" if group == "g" else group
    clients = [gateway.client(f"{name}{number}", is_clean=False, expiry=100) for number in range(count)]
    for number, client in enumerate(clients):
        client.subscribe(f"$share/{group}/t", granted[number % len(granted)])
    return clients


def reconnected(gateway: Gateway, number: int, **options: int) -> Client:
    return gateway.client(f"m{number}", is_clean=False, expiry=100, **options)


@statements("4.8.2-1")
def test_each_message_goes_to_one_member_of_a_group(gateway: Gateway, version: int) -> None:
    clients, alone = members(gateway, 1, count=3), gateway.client("alone")
    other = members(gateway, 1, count=1, group="other")
    alone.subscribe("t", 1)
    writer = gateway.client("w")
    for number in range(9):
        writer.publish("t", b"%d" % number, qos=1, id=number + 1)
    payloads = [[line.split()[-1] for line in client.receive()] for client in (*clients, alone, *other)]
    everything = [f"'{number}'" for number in range(9)]
    assert sorted(chain(*payloads[:3])) == everything
    assert all(payloads[:3])  # each member gets some
    assert payloads[3] == payloads[4] == everything


@statements("4.8.2-1")
def test_a_group_has_one_queue_for_each_filter(gateway: Gateway, version: int) -> None:
    client = gateway.client("c")
    client.subscribe("$share/g/t", 0)
    client.subscribe("$share/g/+", 0)
    gateway.client("w").publish("t")
    assert client.receive() == ["PUBLISH t 'hi'"] * 2


@statements("4.8.2-3")
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_each_member_receives_with_its_granted_qos(
    gateway: Gateway, version: int, published: int, granted: int
) -> None:
    clients = members(gateway, granted, 2 - granted)
    writer = gateway.client("w")
    for number in range(8):
        writer.publish("t", qos=published, id=number + 1)
    for client, most in zip(clients, (granted, 2 - granted), strict=True):
        received = client.receive()
        qos = min(most, published)
        assert received
        assert all(line.startswith(f"PUBLISH q{qos} #" if qos else "PUBLISH t") for line in received)


@statements("4.8.2-3")
def test_a_member_may_change_its_subscription_options(gateway: Gateway, version: int) -> None:
    [client] = members(gateway, 1, count=1)
    writer = gateway.client("w")
    client.subscribe("$share/g/t", options(0, as_published=True), properties=subscription_identifier(5))
    writer.publish("t", qos=1, id=1, retain=True)
    assert client.receive() == ["PUBLISH retain t 'hi' SUBSCRIPTION_IDENTIFIER=5"]


@statements("4.8.2-4")
def test_a_qos_2_delivery_of_a_member_waits_for_its_reconnect(gateway: Gateway, version: int) -> None:
    first, second = members(gateway, 2)
    second.lose()
    gateway.client("w").publish("t", qos=2, id=1)
    assert first.receive() == ["PUBLISH q2 #1 t 'hi'"]
    first.lose()
    assert reconnected(gateway, 1).backlog == []
    first = reconnected(gateway, 0)
    assert first.backlog == ["PUBLISH q2 #1 dup t 'hi'"]
    assert first.pubrec(1) == ["PUBREL #1"]
    assert first.pubcomp(1) == []


@statements("4.8.2-4")
def test_a_qos_2_delivery_waits_for_a_member_that_unsubscribed(gateway: Gateway, version: int) -> None:
    first, second = members(gateway, 2)
    second.lose()
    gateway.client("w").publish("t", qos=2, id=1)
    assert first.receive() == ["PUBLISH q2 #1 t 'hi'"]
    first.unsubscribe("$share/g/t")
    first.lose()
    assert reconnected(gateway, 1).backlog == []
    first = reconnected(gateway, 0)
    assert first.backlog == ["PUBLISH q2 #1 dup t 'hi'"]
    assert first.pubrec(1) == ["PUBREL #1"]


@statements("4.8.2-4")
def test_a_qos_2_delivery_waits_for_its_member_after_a_crash(gateway: Gateway, version: int) -> None:
    first, second = members(gateway, 2)
    second.lose()
    gateway.client("w").publish("t", qos=2, id=1)
    assert first.receive() == ["PUBLISH q2 #1 t 'hi'"]
    after = gateway.crashed()
    assert reconnected(after, 1).backlog == []
    assert reconnected(after, 0).backlog == ["PUBLISH q2 #1 dup t 'hi'"]


@statements("4.8.2-4")
def test_a_qos_2_delivery_after_pubrec_waits_for_its_member(gateway: Gateway, version: int) -> None:
    first, second = members(gateway, 2)
    second.lose()
    gateway.client("w").publish("t", qos=2, id=1)
    first.pubrec(1)
    first.lose()
    assert reconnected(gateway, 1).backlog == []
    assert reconnected(gateway, 0).backlog == ["PUBREL #1"]


@statements("4.8.2-4 3.3.4-9")
def test_waiting_deliveries_respect_the_new_receive_maximum(gateway: Gateway, version: int) -> None:
    first, second = members(gateway, 2)
    second.lose()
    writer = gateway.client("w")
    for number in range(3):
        writer.publish("t", b"%d" % number, qos=2, id=number + 1)
    assert len(first.receive()) == 3
    first.lose()
    first = reconnected(gateway, 0, properties=receive_maximum(1))  # type: ignore[arg-type]
    received = list(first.backlog)
    for number in range(1, 4):
        assert len([line for line in received if line.startswith("PUBLISH")]) == number
        received += first.pubrec(number)
        received += first.pubcomp(number)
    published = [line for line in received if line.startswith("PUBLISH")]
    assert published == [f"PUBLISH q2 #{number + 1} dup t '{number}'" for number in range(3)]


@statements("4.8.2-5")
@pytest.mark.parametrize("ends", ["expires", "starts over"])
def test_an_unfinished_qos_2_delivery_of_a_member_goes_to_no_other(gateway: Gateway, version: int, ends: str) -> None:
    first, second = members(gateway, 2)
    second.lose()
    gateway.client("w").publish("t", qos=2, id=1)
    assert first.receive() == ["PUBLISH q2 #1 t 'hi'"]
    first.lose()
    second = gateway.client("m1", is_clean=False, expiry=10_000)
    if ends == "expires":
        gateway.advance(200)
    else:
        gateway.client("m0", is_clean=True)
    assert second.receive() == []
    second.lose()
    assert gateway.client("m1", is_clean=False).backlog == []


@statements("4.8.2-6")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_that_a_member_refused_goes_to_no_other(gateway: Gateway, version: int, qos: int) -> None:
    first, second = members(gateway, qos)
    second.lose()
    gateway.client("w").publish("t", qos=qos, id=1)
    assert len(first.receive()) == 1
    assert (first.puback(1, 0x80) if qos == 1 else first.pubrec(1, 0x80)) == []
    assert reconnected(gateway, 1).backlog == []
    first.lose()
    assert reconnected(gateway, 0).backlog == []


@statements("4.8.2-3")
def test_an_unacknowledged_qos_1_delivery_of_a_member_goes_to_another(gateway: Gateway, version: int) -> None:
    first, second = members(gateway, 1)
    second.lose()
    gateway.client("w").publish("t", qos=1, id=1)
    assert first.receive() == ["PUBLISH q1 #1 t 'hi'"]
    first.lose()
    assert [line.replace(" dup", "") for line in reconnected(gateway, 1).backlog] == ["PUBLISH q1 #1 t 'hi'"]
    assert reconnected(gateway, 0).backlog == []


@statements("4.8.2-3")
def test_messages_wait_for_a_group_whose_members_are_offline(gateway: Gateway, version: int) -> None:
    for client in members(gateway, 1):
        client.lose()
    writer = gateway.client("w")
    for number in range(4):
        writer.publish("t", b"%d" % number, qos=1, id=number + 1)
    assert [line.split()[-1] for line in reconnected(gateway, 1).backlog] == ["'0'", "'1'", "'2'", "'3'"]


@statements("4.8.2-1")
def test_a_group_without_members_is_deleted(gateway: Gateway, version: int) -> None:
    clients = members(gateway, 1)
    clients[0].unsubscribe("$share/g/t")
    clients[1].disconnect(0, b"\x11\0\0\0\0")
    assert not [name for name in gateway.vhost.queue_by_name if "shared" in name]
