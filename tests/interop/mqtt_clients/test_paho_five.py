"""paho-mqtt with features of 5.0: properties, shared subscriptions, expiry, reasons."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.mqtt_clients.paho_client import V5, Paho, properties_of

Client = Callable[..., Paho]

NO_MATCHING_SUBSCRIBERS = 0x10
NO_SUBSCRIPTION_EXISTED = 0x11
PROTOCOL_ERROR = 0x82
TOPIC_FILTER_INVALID = 0x8F
TOPIC_ALIAS_INVALID = 0x94
PAYLOAD_FORMAT_INVALID = 0x99


@pytest.fixture
def client(paho: Client, name: str) -> Client:
    return lambda who="one", **options: paho(V5, f"{name}-{who}", **options)


@pytest.fixture
def one(client: Client) -> Paho:
    """Return a connected client."""
    one = client()
    one.connect()
    return one


def with_identifier(number: int) -> Any:
    return properties_of(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=number)


def will_properties(**properties: Any) -> Any:
    return properties_of(PacketTypes.WILLMESSAGE, **properties)


# Messages and properties


def test_every_property_is_delivered_unchanged(one: Paho, name: str) -> None:
    one.subscribe(name, qos=1)
    pairs = [("colour", "red"), ("size", "größer"), ("colour", "blue"), ("", "")]
    one.publish(
        name,
        b'{"on": true}',
        qos=1,
        PayloadFormatIndicator=1,
        MessageExpiryInterval=300,
        ContentType="application/json",
        ResponseTopic=f"{name}/answers",
        CorrelationData=b"\x00\xff\x01",
        UserProperty=pairs,
    )
    properties = one.next().properties
    assert properties.PayloadFormatIndicator == 1
    assert properties.MessageExpiryInterval in (299, 300)
    assert properties.ContentType == "application/json"
    assert properties.ResponseTopic == f"{name}/answers"
    assert properties.CorrelationData == b"\x00\xff\x01"
    assert properties.UserProperty == pairs


def test_a_request_is_answered_at_its_response_topic(client: Client, one: Paho, name: str) -> None:
    server = client("server")
    server.connect()
    server.subscribe(f"{name}/add", qos=1)
    one.subscribe(f"{name}/answers/one", qos=1)
    one.publish(f"{name}/add", b"2 3", qos=1, ResponseTopic=f"{name}/answers/one", CorrelationData=b"sum-1")

    request = server.next()
    total = sum(map(int, request.payload.split()))
    server.publish(
        request.properties.ResponseTopic, b"%d" % total, qos=1, CorrelationData=request.properties.CorrelationData
    )
    answer = one.next()
    assert (answer.payload, answer.properties.CorrelationData) == (b"5", b"sum-1")


def test_an_alias_replaces_its_topic(one: Paho, name: str) -> None:
    assert one.subscribe(f"{name}/#", qos=1) == [1]
    one.publish(f"{name}/a/long/topic", b"1", qos=1, TopicAlias=3)
    one.publish("", b"2", qos=1, TopicAlias=3)
    one.publish(f"{name}/another", b"3", qos=1, TopicAlias=3)
    one.publish("", b"4", qos=1, TopicAlias=3)
    topics = [one.next().topic.removeprefix(name) for _ in range(4)]
    assert topics == ["/a/long/topic", "/a/long/topic", "/another", "/another"]


def test_an_alias_above_the_maximum_ends_the_connection(client: Client, name: str) -> None:
    one = client()
    most = one.connect().properties.TopicAliasMaximum
    one.start_publish(name, qos=1, TopicAlias=most + 1)
    assert one.wait_for_the_end().value == TOPIC_ALIAS_INVALID


def test_the_server_respects_the_topic_alias_maximum(client: Client, name: str) -> None:
    one = client()
    most = one.connect(TopicAliasMaximum=1000).properties.TopicAliasMaximum
    one.subscribe(f"{name}/#", qos=1)
    for number in range(most + 4):
        one.publish(f"{name}/{number}", qos=1)
    aliases = [getattr(one.next().properties, "TopicAlias", None) for _ in range(most + 4)]
    assert aliases == [*range(1, most + 1), None, None, None, None]


def test_an_expired_message_is_not_delivered(client: Client, one: Paho, name: str) -> None:
    sleeper = client("sleeper", keeps_session=True)
    sleeper.connect()
    sleeper.subscribe(name, qos=1)
    sleeper.disconnect()
    one.publish(name, b"short", qos=1, MessageExpiryInterval=1)
    one.publish(name, b"long", qos=1, MessageExpiryInterval=100)
    one.publish(name, b"for ever", qos=1)
    time.sleep(1.2)  # the message expires by the clock of the server, which no client can observe

    back = client("sleeper", keeps_session=True)
    back.connect()
    long, forever = back.next(), back.next()
    assert (long.payload, forever.payload) == (b"long", b"for ever")
    assert 80 <= long.properties.MessageExpiryInterval <= 99, "the expiry interval excludes the waiting time"
    assert not hasattr(forever.properties, "MessageExpiryInterval")
    assert back.receives_nothing_more()


def test_a_payload_that_is_not_utf_8_as_announced_is_refused(one: Paho, name: str) -> None:
    one.subscribe(name, qos=1)
    assert one.publish(name, b"\xff\xfe", qos=1, PayloadFormatIndicator=1) == PAYLOAD_FORMAT_INVALID
    assert one.receives_nothing_more()


def test_a_publisher_gets_the_reason_no_matching_subscribers(one: Paho, name: str) -> None:
    assert one.publish(name, qos=1) == NO_MATCHING_SUBSCRIBERS
    one.subscribe(name)
    assert one.publish(name, qos=1) == 0


# Subscriptions


def test_a_group_shares_messages(client: Client, one: Paho, name: str) -> None:
    members = [client(f"member-{number}") for number in range(3)]
    for member in members:
        member.connect()
        assert member.subscribe(f"$share/workers/{name}/#", qos=1) == [1]
    outsider = client("outsider")
    outsider.connect()
    outsider.subscribe(f"{name}/#", qos=1)
    for number in range(30):
        one.publish(f"{name}/{number}", b"%d" % number, qos=1)

    shares = [member.payloads(10) for member in members]
    assert sorted(int(payload) for share in shares for payload in share) == list(range(30))
    assert all(member.receives_nothing_more() for member in members)
    assert outsider.payloads(30) == [b"%d" % number for number in range(30)]


def test_an_unacknowledged_message_of_a_member_goes_to_another(client: Client, one: Paho, name: str) -> None:
    forgetful, careful = client("forgetful", acknowledges=False), client("careful")
    forgetful.connect()
    forgetful.subscribe(f"$share/workers/{name}", qos=1)
    one.publish(name, b"work", qos=1)
    assert forgetful.next().payload == b"work"
    careful.connect()
    careful.subscribe(f"$share/workers/{name}", qos=1)
    forgetful.vanish()
    assert careful.next().payload == b"work"


def test_a_delivery_has_the_identifiers_of_matching_subscriptions(one: Paho, name: str) -> None:
    one.subscribe(f"{name}/+", qos=1, properties=with_identifier(7))
    one.subscribe(f"{name}/#", qos=1, properties=with_identifier(268_435_455))
    one.publish(f"{name}/a", qos=1)
    assert sorted(one.next().properties.SubscriptionIdentifier) == [7, 268_435_455]
    assert one.receives_nothing_more()


def test_overlapping_subscriptions_deliver_one_copy_with_the_highest_qos(one: Paho, name: str) -> None:
    one.subscribe(f"{name}/+", qos=0)
    one.subscribe(f"{name}/#", qos=2)
    one.subscribe(f"{name}/a", qos=1)
    one.publish(f"{name}/a", b"once", qos=2)
    assert one.next().qos == 2
    assert one.receives_nothing_more()


def test_no_local_keeps_a_client_s_own_messages_away(client: Client, one: Paho, name: str) -> None:
    other = client("other")
    other.connect()
    one.subscribe(name, qos=1, noLocal=True)
    one.publish(name, b"mine", qos=1)
    other.publish(name, b"another's", qos=1)
    assert one.payloads(1) == [b"another's"]
    assert one.receives_nothing_more()


def test_retain_as_published_keeps_the_retain_flag(client: Client, one: Paho, name: str) -> None:
    other = client("other")
    other.connect()
    one.subscribe(name, qos=1, retainAsPublished=True)
    other.subscribe(name, qos=1)
    one.publish(name, b"kept", qos=1, retain=True)
    assert (one.next().retain, other.next().retain) == (True, False)


@pytest.mark.parametrize(
    ("handling", "copies"),
    [
        pytest.param(SubscribeOptions.RETAIN_SEND_ON_SUBSCRIBE, 2, id="each time"),
        pytest.param(SubscribeOptions.RETAIN_SEND_IF_NEW_SUB, 1, id="if the subscription is new"),
        pytest.param(SubscribeOptions.RETAIN_DO_NOT_SEND, 0, id="never"),
    ],
)
def test_retain_handling_decides_on_retained_messages(one: Paho, name: str, handling: int, copies: int) -> None:
    one.publish(name, b"kept", qos=1, retain=True)
    one.subscribe(name, qos=1, retainHandling=handling)
    one.subscribe(name, qos=1, retainHandling=handling)
    assert [one.next().retain for _ in range(copies)] == [True] * copies
    assert one.receives_nothing_more()


def test_invalid_filters_are_refused_one_by_one(one: Paho, name: str) -> None:
    # paho validates filters itself, but not the part after $share
    assert one.subscribe(f"$share//{name}", name, qos=1) == [TOPIC_FILTER_INVALID, 1]
    assert one.unsubscribe(name) == [0]
    assert one.unsubscribe(name) == [NO_SUBSCRIPTION_EXISTED]


def test_no_local_on_a_shared_subscription_is_refused(one: Paho, name: str) -> None:
    options = SubscribeOptions(1, noLocal=True)
    one.client.subscribe(f"$share/workers/{name}", options=options)
    assert one.wait_for_the_end().value == PROTOCOL_ERROR


# Sessions and connections


def test_a_client_without_an_identifier_gets_one(paho: Client) -> None:
    nameless, another = paho(V5), paho(V5)
    first = nameless.connect().properties.AssignedClientIdentifier
    assert first
    assert another.connect().properties.AssignedClientIdentifier != first


def test_a_session_without_expiry_ends_with_its_connection(client: Client, name: str) -> None:
    one = client()
    one.connect()
    one.subscribe(name, qos=1)
    one.vanish()
    assert not client().connect(clean_start=False).is_session_present


def test_disconnect_may_shorten_the_session_expiry(client: Client, name: str) -> None:
    one = client(keeps_session=True)
    one.connect()
    one.subscribe(name, qos=1)
    one.disconnect(SessionExpiryInterval=0)
    assert not client().connect(clean_start=False).is_session_present


def test_a_delayed_will_is_cancelled_by_a_reconnect(client: Client, one: Paho, name: str) -> None:
    one.subscribe(f"{name}/+", qos=1)
    for who, delay_s in (("quick", 30), ("slow", 1)):
        mortal = client(who, keeps_session=True)
        properties = will_properties(WillDelayInterval=delay_s, UserProperty=[("from", who)])
        mortal.client.will_set(f"{name}/{who}", b"gone", qos=1, properties=properties)
        mortal.connect()
        mortal.vanish()
    client("quick", keeps_session=True).connect()
    message = one.next()
    assert message.topic == f"{name}/slow"
    assert message.properties.UserProperty == [("from", "slow")]
    assert one.receives_nothing_more()


def test_disconnect_with_will_publishes_the_will(client: Client, one: Paho, name: str) -> None:
    one.subscribe(name, qos=1)
    mortal = client("mortal")
    mortal.client.will_set(name, b"gone on purpose", qos=1)
    mortal.connect()
    mortal.client.disconnect(ReasonCode(PacketTypes.DISCONNECT, "Disconnect with will message"))
    mortal.wait_for_the_end()
    assert one.payloads(1) == [b"gone on purpose"]


def test_deliveries_respect_receive_maximum(client: Client, one: Paho, name: str) -> None:
    narrow = client("narrow", acknowledges=False)
    narrow.connect(ReceiveMaximum=3)
    narrow.subscribe(name, qos=1)
    for number in range(8):
        one.publish(name, b"%d" % number, qos=1)
    received = [narrow.next() for _ in range(3)]
    narrow.subscribe(f"{name}/other")  # its answer would follow a fourth message
    assert narrow.unread == 0
    for message in received:
        narrow.client.ack(message.mid, 1)
    assert narrow.payloads(3) == [b"3", b"4", b"5"]


def test_deliveries_respect_maximum_packet_size(client: Client, one: Paho, name: str) -> None:
    small = client("small")
    small.connect(MaximumPacketSize=200)
    small.subscribe(name, qos=1)
    one.publish(name, bytes(300), qos=1)
    one.publish(name, b"fits", qos=1)
    assert small.payloads(1) == [b"fits"]


def test_unavailable_features_are_announced(client: Client) -> None:
    properties = client().connect().properties
    assert properties.MaximumPacketSize == 16 * 2**20
    assert properties.TopicAliasMaximum == 16
    for absent in ("MaximumQoS", "RetainAvailable", "WildcardSubscriptionAvailable", "SharedSubscriptionAvailable"):
        assert getattr(properties, absent, 1) == 1  # absent means available


def test_the_session_expiry_is_limited_by_the_server(client: Client) -> None:
    one = client(keeps_session=False)
    assert one.connect(SessionExpiryInterval=4_294_967_295).properties.SessionExpiryInterval == 86_400
