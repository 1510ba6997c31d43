"""Topic names and topic filters: validation and matching (4.7)."""

import unicodedata

import pytest

from tests.conformance.mqtt.tables import CLOSED, MALFORMED, Row, rows, statements
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import text

# ---------------------------------------------------------------- validation

NO_FILTERS = {
    "4.7.1-1 4.7.1-2": ["a#", "#a", "#/a", "a/#/b", "a/#b", "##", "a/##", "/#/"],
    "4.7.1-2 4.7.1-3": ["a+", "+a", "a/+b", "a/b+/c", "++", "+#"],
}
FILTERS = {
    "4.7.1-1 4.7.1-2": ["#", "a/#", "/#", "a/b/c/#", "+/#", "//#"],
    "4.7.1-2 4.7.1-3": ["+", "+/+", "/+", "+/", "a/+/b", "+/a/+", "a/+", "//+"],
    "4.7.3-1 4.7.3-1": ["a", "/", " ", "//", "a b", "$", "é", "\ufeff", ".", "*", "%", "a.*.#b".replace("#", "")],
}
WORDED: list[Row] = [
    row
    for table, code in ((NO_FILTERS, True), (FILTERS, False))
    for ids, filters in table.items()
    for filter in filters
    for version, id in enumerate(reversed(ids.split()), 4)
    for row in rows(
        repr(filter),
        id if version == 5 else "",
        id if version == 4 else "",
        lambda w, filter=filter: w.subscribe((filter, 1)),  # type: ignore[misc]
        "SUBACK #1 1" if not code else "SUBACK #1 8f" if version == 5 else "SUBACK #1 80",
    )
]


@pytest.mark.parametrize(("version", "sent", "received"), WORDED)
def test_filters_that_are_accepted_and_refused(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version).request(sent) == received


NULLS: list[Row] = [
    *rows("a topic", "4.7.3-2", "4.7.3-2", lambda w: w.publish("a\0"), *MALFORMED),
    *rows("a filter", "4.7.3-2", "4.7.3-2", lambda w: w.subscribe(("a/\0/#", 0)), *MALFORMED),
    *rows("a filter to forget", "4.7.3-2", "4.7.3-2", lambda w: w.unsubscribe("\0"), *MALFORMED),
    *rows("an empty filter", "4.7.3-1", "4.7.3-1", lambda w: w.subscribe(("a", 1), ("", 1)), *MALFORMED),
    *rows("an empty filter in UNSUBSCRIBE", "4.7.3-1", "4.7.3-1", lambda w: w.unsubscribe("a", ""), *MALFORMED),
    *rows("a group without a filter", "4.8.2-2", "", lambda w: w.subscribe(("$share/g/", 1)), *MALFORMED),
    *rows("a group without a filter in UNSUBSCRIBE", "4.8.2-2", "", lambda w: w.unsubscribe("$share/g/"), *MALFORMED),
    *rows("an empty topic of QoS 1", "4.7.3-1", "4.7.3-1", lambda w: w.publish("", qos=1, id=1),
          "DISCONNECT PROTOCOL_ERROR", CLOSED),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), NULLS)
def test_an_empty_topic_or_filter_or_one_with_u_0000_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes, received: list[str]
) -> None:
    assert gateway.client("c", version, is_clean=False).request(sent) == received
    assert not any(len(session.subscriptions) for session in gateway.vhost.sessions)


@statements("4.7.3-3", "4.7.3-3")
def test_a_topic_of_the_maximum_length_is_accepted(gateway: Gateway, version: int) -> None:
    level = "a" * 3_275 + "/"
    topic = level * 20 + "b" * 15
    assert len(text(topic)) == 65_537
    reader, writer = gateway.client("r", version), gateway.client("w", version)
    assert reader.subscribe(topic, 1) == ["SUBACK #1 1"]
    assert reader.subscribe(level * 19 + "+/" + "b" * 15, 1) == ["SUBACK #1 1"]
    assert writer.publish(topic, qos=1, id=1) == ["PUBACK #1"]
    assert reader.receive() == [f"PUBLISH q1 #1 {topic} 'hi'"]


# ---------------------------------------------------------------- matching

#: Filter, matching topics, other topics.
MATCHES = [
    ("sport/tennis/player1/#", ["sport/tennis/player1", "sport/tennis/player1/ranking", "sport/tennis/player1/a/b"],
     ["sport/tennis/player2", "sport/tennis/player1x", "sport/tennis"]),
    ("sport/#", ["sport", "sport/", "sport/a"], ["sports", "/sport"]),
    ("#", ["a", "/", "a/b/c", " "], ["$a", "$SYSx/a", "$"]),
    ("/#", ["/", "/a", "//", "/a/b"], ["a", "a/"]),
    ("sport/tennis/+", ["sport/tennis/player1", "sport/tennis/"],
     ["sport/tennis/player1/ranking", "sport/tennis", "sport"]),
    ("sport/+", ["sport/"], ["sport"]),
    ("+", ["finance", " "], ["/finance", "finance/", "$a"]),
    ("+/+", ["/finance", "a/b", "/", "finance/"], ["finance", "a/b/c", "$a/b"]),
    ("/+", ["/finance", "/"], ["finance", "//"]),
    ("+/tennis/#", ["sport/tennis", "/tennis", "x/tennis/a/b"], ["sport/x/tennis", "$x/tennis"]),
    ("+/+/+", ["//", "a//", "a/b/c", "/b/"], ["/", "a/b"]),
    ("+/#", ["a", "a/b", "/"], ["$a", "$a/b"]),
    ("a/+/+/d", ["a/b/c/d", "a///d"], ["a/b/d"]),
]  # fmt: skip
MATCHING = [
    pytest.param(filter, topic, is_match, id=f"{filter} {topic}")
    for filter, matching, others in MATCHES
    for topics, is_match in ((matching, True), (others, False))
    for topic in topics
]


@statements("4.7.1-1 4.7.1-2 3.3.2-3", "4.7.1-2 4.7.1-3 3.3.2-3")
@pytest.mark.parametrize(("filter", "topic", "is_match"), MATCHING)
def test_the_topics_that_a_filter_matches(
    gateway: Gateway, version: int, filter: str, topic: str, is_match: bool
) -> None:
    readers = [gateway.client(f"r{qos}", version) for qos in (0, 1)]
    for qos, reader in enumerate(readers):
        reader.subscribe(filter, qos)
    writer = gateway.client("w")
    writer.publish(topic, qos=1, id=1, retain=True)
    expected = [[f"PUBLISH {topic} 'hi'"], [f"PUBLISH q1 #1 {topic} 'hi'"]] if is_match else [[], []]
    assert [reader.receive() for reader in readers] == expected
    retained = gateway.client("late", version).subscribe(filter)[1:]
    assert retained == ([f"PUBLISH retain {topic} 'hi'"] if is_match else [])


@statements("4.7.2-1", "4.7.2-1")
@pytest.mark.parametrize("filter", ["#", "+", "+/a", "+/+", "+/#"])
@pytest.mark.parametrize("topic", ["$x", "$x/a", "$"])
def test_a_leading_wildcard_does_not_match_topics_with_a_dollar(
    gateway: Gateway, version: int, filter: str, topic: str
) -> None:
    reader = gateway.client("r", version)
    for qos in (0, 1):
        reader.subscribe(filter, qos)
        gateway.client("w").publish(topic, qos=1, id=1, retain=True)
        assert reader.receive() == []
        assert reader.subscribe(filter, qos) == [f"SUBACK #1 {qos}"]


@statements("4.7.2-1", "4.7.2-1")
@pytest.mark.parametrize("filter", ["$x/#", "$x/+", "$x/a", "$x/a/#"])
@pytest.mark.parametrize("others", [(), ("#",), ("+/a",), ("#", "+/+")])
def test_a_filter_that_names_a_topic_with_a_dollar_matches_it(
    gateway: Gateway, version: int, filter: str, others: tuple[str, ...]
) -> None:
    reader = gateway.client("r", version)
    for other in others:
        reader.subscribe(other, 0)
    reader.subscribe(filter, 1)
    gateway.client("w").publish("$x/a", qos=1, id=1)
    assert reader.receive() == ["PUBLISH q1 #1 $x/a 'hi'"]


@statements("4.7.2-1", "4.7.2-1")
def test_a_shared_subscription_with_a_leading_wildcard_does_not_match_topics_with_a_dollar(
    gateway: Gateway, version: int
) -> None:
    reader = gateway.client("r", version)
    reader.subscribe("$share/g/#", 1)
    gateway.client("w").publish("$x", qos=1, id=1)
    gateway.client("w").publish("x", qos=1, id=1)
    assert reader.receive() == ["PUBLISH q1 #1 x 'hi'"]


@statements("4.7.3-4", "4.7.3-4")
@pytest.mark.parametrize(
    ("topic", "alike"),
    [
        ("a/b", "a//b"), ("a", "/a"), ("a", "a/"), ("a", "A"), ("a", " a"), ("a/./b", "a/b"), ("a/../b", "b"),
        (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")), ("ﬁ", "fi"), ("a/b", "a.b"),
        ("a", "a\u200b"), ("a%2Fb", "a/b"), ("a%2Eb", "a.b"), ("*", "%2A"), ("%", "%25"), ("\ufffd", "\uffff"),
    ],
)  # fmt: skip
def test_similar_topic_names_are_different(gateway: Gateway, version: int, topic: str, alike: str) -> None:
    reader, other = gateway.client("r", version), gateway.client("o", version)
    reader.subscribe(topic, 1)
    other.subscribe(alike, 0)
    writer = gateway.client("w")
    writer.publish(topic, b"one", qos=1, id=1)
    writer.publish(alike, b"two", qos=1, id=1)
    assert reader.receive() == [f"PUBLISH q1 #1 {topic} 'one'"]
    assert other.receive() == [f"PUBLISH {alike} 'two'"]
    assert gateway.client("late", version).subscribe(alike) == ["SUBACK #1 0"]
