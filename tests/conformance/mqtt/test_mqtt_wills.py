"""Wills: published when the connection ends without a normal DISCONNECT (3.1.2.5, 3.1.3.2)."""

import pytest

from tests.conformance.mqtt.tables import CLOSED, statements
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import (
    Will,
    content_type,
    correlation_data,
    message_expiry,
    packet,
    payload_format,
    response_topic,
    session_expiry,
    user_property,
    will_delay,
)

WILL = "PUBLISH w 'gone'"
CLEAN, WITH_WILL = 0x00, 0x04


@pytest.fixture
def watcher(gateway: Gateway) -> Client:
    watcher = gateway.client("watcher")
    watcher.subscribe("w", 2)
    return watcher


@statements("3.1.2-7 3.1.2-8", "3.1.2-8")
def test_a_will_is_published_when_the_connection_is_lost(gateway: Gateway, watcher: Client, version: int) -> None:
    client = gateway.client("c", version, will=Will("w"))
    assert watcher.receive() == []
    client.lose()
    assert watcher.receive() == [WILL]


@statements("3.1.2-8", "3.1.2-8")
def test_a_will_is_published_after_a_protocol_error_of_the_client(
    gateway: Gateway, watcher: Client, version: int
) -> None:
    client = gateway.client("c", version, will=Will("w"))
    assert client.request(packet(0xD0))[-1] == CLOSED
    assert watcher.receive() == [WILL]


@statements("3.1.2-8", "3.1.2-8")
def test_a_will_is_published_when_its_client_is_taken_over(gateway: Gateway, watcher: Client, version: int) -> None:
    gateway.client("c", version, will=Will("w"))
    gateway.client("c", version)
    assert watcher.receive() == [WILL]


@statements("3.1.2-10 3.14.4-3", "3.1.2-10 3.14.4-3")
def test_a_normal_disconnect_discards_the_will(gateway: Gateway, watcher: Client, version: int) -> None:
    client = gateway.client("c", version, will=Will("w"), is_clean=False, expiry=100)
    assert client.disconnect() == [CLOSED]
    gateway.advance(200)
    assert watcher.receive() == []


@statements("3.1.2-8")
@pytest.mark.parametrize("reason", [WITH_WILL, 0x80, 0x81, 0x93])
def test_a_disconnect_with_another_reason_publishes_the_will(
    gateway: Gateway, watcher: Client, version: int, reason: int
) -> None:
    gateway.client("c", version, will=Will("w")).disconnect(reason)
    assert watcher.receive() == [WILL]


@statements("3.1.2-10", "3.1.2-10")
def test_a_will_is_published_once(gateway: Gateway, watcher: Client, version: int) -> None:
    gateway.client("c", version, will=Will("w"), is_clean=False, expiry=100).lose()
    assert watcher.receive() == [WILL]
    gateway.client("c", version, is_clean=False).lose()
    gateway.advance(200)
    assert watcher.receive() == []


@statements("3.1.2-10", "3.1.2-12")
def test_a_client_without_a_will_publishes_none(gateway: Gateway, version: int) -> None:
    watcher = gateway.client("watcher")
    watcher.subscribe("#")
    gateway.client("c", version).lose()
    assert watcher.receive() == []


@statements("3.1.2-9", "3.1.2-9")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will_is_published_with_its_qos(gateway: Gateway, watcher: Client, version: int, qos: int) -> None:
    gateway.client("c", version, will=Will("w", b"\x00\xffbytes", qos)).lose()
    mark = f"q{qos} #1 " if qos else ""
    assert watcher.receive() == [f"PUBLISH {mark}w '\\x00\\xffbytes'"]


@statements("3.1.2-14", "3.1.2-16")
def test_a_will_without_retain_is_not_retained(gateway: Gateway, version: int) -> None:
    gateway.client("c", version, will=Will("w")).lose()
    assert gateway.client("late").subscribe("w") == ["SUBACK #1 0"]


@statements("3.1.2-15", "3.1.2-17")
def test_a_will_with_retain_is_retained(gateway: Gateway, watcher: Client, version: int) -> None:
    gateway.client("c", version, will=Will("w", retain=True)).lose()
    assert watcher.receive() == [WILL]
    assert gateway.client("late").subscribe("w") == ["SUBACK #1 0", "PUBLISH retain w 'gone'"]


@statements("3.1.3-10 3.1.2-9 3.1.3-1")
def test_a_will_is_published_with_its_properties_in_order(gateway: Gateway, watcher: Client, version: int) -> None:
    pairs = user_property("b", "1") + user_property("a", "2") + user_property("b", "1")
    properties = payload_format(1) + content_type("text") + pairs
    properties += response_topic("r") + correlation_data(b"\0\1") + will_delay(0)
    gateway.client("c", version, will=Will("w", properties=properties)).lose()
    [line] = watcher.receive()
    assert line.startswith(WILL)
    assert set(line.split()[3:]) == {
        "PAYLOAD_FORMAT_INDICATOR=1", "CONTENT_TYPE='text'", "RESPONSE_TOPIC='r'", "CORRELATION_DATA='\\x00\\x01'",
        "USER_PROPERTY=('b',", "'1')", "USER_PROPERTY=('a',", "'2')",
    }  # fmt: skip
    assert [word for word in line.split() if word in ("'1')", "'2')")] == ["'1')", "'2')", "'1')"]


# ---------------------------------------------------------------- delays


def delayed(gateway: Gateway, delay: int, expiry: int) -> Client:
    return gateway.client("c", is_clean=False, expiry=expiry, will=Will("w", properties=will_delay(delay)))


@statements("3.1.2-8")
def test_a_will_waits_for_its_delay_interval(gateway: Gateway, watcher: Client, version: int) -> None:
    delayed(gateway, delay=10, expiry=100).lose()
    gateway.advance(9)
    assert watcher.receive() == []
    gateway.advance(2)
    assert watcher.receive() == [WILL]


@statements("3.1.2-8")
def test_a_will_is_published_at_the_latest_when_its_session_ends(
    gateway: Gateway, watcher: Client, version: int
) -> None:
    delayed(gateway, delay=100, expiry=10).lose()
    gateway.advance(9)
    assert watcher.receive() == []
    gateway.advance(2)
    assert watcher.receive() == [WILL]


@statements("3.1.2-8")
def test_a_will_of_a_session_without_expiry_is_published_at_once(
    gateway: Gateway, watcher: Client, version: int
) -> None:
    delayed(gateway, delay=100, expiry=0).lose()
    assert watcher.receive() == [WILL]


@statements("3.1.2-8")
def test_a_will_is_published_at_once_if_disconnect_ends_the_session(
    gateway: Gateway, watcher: Client, version: int
) -> None:
    delayed(gateway, delay=100, expiry=100).disconnect(WITH_WILL, session_expiry(0))
    assert watcher.receive() == [WILL]


@statements("3.1.3-9")
@pytest.mark.parametrize("delay", [10, 100])
def test_a_client_that_reconnects_in_time_cancels_its_will(
    gateway: Gateway, watcher: Client, version: int, delay: int
) -> None:
    delayed(gateway, delay, expiry=100).lose()
    gateway.advance(9)
    gateway.client("c", is_clean=False, expiry=100)
    gateway.advance(1000)
    assert watcher.receive() == []


@statements("3.1.3-9")
def test_a_client_that_takes_over_its_own_session_cancels_its_delayed_will(
    gateway: Gateway, watcher: Client, version: int
) -> None:
    delayed(gateway, delay=10, expiry=100)
    gateway.client("c", is_clean=False, expiry=100)
    gateway.advance(1000)
    assert watcher.receive() == []


@statements("3.1.2-8")
def test_a_clean_start_ends_the_session_and_publishes_the_will(gateway: Gateway, watcher: Client, version: int) -> None:
    delayed(gateway, delay=10, expiry=100).lose()
    gateway.client("c", is_clean=True)
    assert watcher.receive() == [WILL]


@statements("3.1.2-8")
def test_a_delayed_will_survives_a_crash(gateway: Gateway, version: int) -> None:
    watcher = gateway.client("watcher", is_clean=False, expiry=1000)
    watcher.subscribe("w", 1)
    delayed(gateway, delay=10, expiry=100).lose()
    gateway.advance(5)
    after = gateway.crashed()
    watcher = after.client("watcher", is_clean=False, expiry=1000)
    assert watcher.backlog == []
    after.advance(6)
    assert watcher.receive() == [WILL]


@statements("3.3.2-6")
def test_the_expiry_of_a_will_starts_when_it_is_published(gateway: Gateway, watcher: Client, version: int) -> None:
    will = Will("w", properties=will_delay(10) + message_expiry(60))
    gateway.client("c", is_clean=False, expiry=100, will=will).lose()
    gateway.advance(11)
    assert watcher.receive() == [f"{WILL} MESSAGE_EXPIRY_INTERVAL=60"]
