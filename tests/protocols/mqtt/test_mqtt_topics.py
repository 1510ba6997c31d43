"""Topic names and filters: their validation (MQTT 5.0, 4.7, 4.8.2), and their mapping to AMQP keys and back."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.kernel.routing.topic_trie import TopicTrie
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.translation.topics import (
    LOSSY,
    REVERSIBLE,
    SharedSubscription,
    TopicMapping,
    check_filter,
    check_topic,
    parse_filter,
)
from tests.protocols.mqtt.client_packets import filters, topics

TOPICS = ["a", "/", "//", "/a", "a/", "a//b", "sport/tennis", " ", "$SYS/x", "a b/é", "\ufeff", "x" * 65_535]
NO_TOPICS = ["", "+", "#", "a/+", "a+", "a/#", "#a", "a\0b"]

FILTERS = ["#", "+", "a/#", "+/+", "+/a/#", "/+", "a/+/b", "/", "a", "$SYS/#", "a/b c/d", "sport/tennis/player1/#"]
NO_FILTERS = [
    "",
    "a#",
    "#/a",
    "a/#/b",
    "sport/tennis#",
    "sport/tennis/#/ranking",
    "sport+",
    "+a",
    "a/b+/c",
    "##",
    "a\0",
]


def is_filter(text: str) -> bool:
    try:
        check_filter(text)
    except MqttError:
        return False
    return True


@pytest.mark.parametrize("topic", TOPICS)
def test_valid_topic_names_are_valid_filters(topic: str) -> None:
    check_topic(topic)
    assert is_filter(topic)


@pytest.mark.parametrize("text", NO_TOPICS)
def test_invalid_topic_names_are_refused(text: str) -> None:
    with pytest.raises(MqttError) as refusal:
        check_topic(text)
    assert refusal.value.reason is ReasonCode.TOPIC_NAME_INVALID


@pytest.mark.parametrize("text", FILTERS)
def test_valid_filters_are_accepted(text: str) -> None:
    assert parse_filter(text) == (None, text)


@pytest.mark.parametrize("text", NO_FILTERS)
def test_invalid_filters_are_refused(text: str) -> None:
    for refuses in (check_filter, parse_filter):
        with pytest.raises(MqttError) as refusal:
            refuses(text)
        assert refusal.value.reason is ReasonCode.TOPIC_FILTER_INVALID


@given(filters)
def test_filters_of_valid_levels_are_valid(filter: str) -> None:
    assert is_filter(filter)


@pytest.mark.parametrize(
    ("text", "group", "filter"),
    [
        ("$share/consumer1/sport/tennis/+", "consumer1", "sport/tennis/+"),
        ("$share/consumer2//finance", "consumer2", "/finance"),
        ("$share/g//", "g", "/"),
        ("$share/g/#", "g", "#"),
        ("$share/g/$SYS/x", "g", "$SYS/x"),
        ("$share/$share/$share/x", "$share", "$share/x"),
        ("$share/a group/x", "a group", "x"),
    ],
)
def test_a_shared_subscription_has_a_group_and_a_filter(text: str, group: str, filter: str) -> None:
    assert parse_filter(text) == (SharedSubscription(group, filter), filter)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("$share/", id="nothing"),
        pytest.param("$share/g", id="MQTT-4.8.2-2: no slash and filter"),
        pytest.param("$share/g/", id="MQTT-4.8.2-2: no filter"),
        pytest.param("$share//x", id="MQTT-4.8.2-1: no group"),
        pytest.param("$share/+/x", id="MQTT-4.8.2-2: a wildcard for a group"),
        pytest.param("$share/g#/x", id="MQTT-4.8.2-2: a wildcard in the group"),
        pytest.param("$share/g/x#", id="no filter behind it"),
    ],
)
def test_an_incomplete_shared_subscription_is_refused(text: str) -> None:
    with pytest.raises(MqttError) as refusal:
        parse_filter(text)
    assert refusal.value.reason is ReasonCode.TOPIC_FILTER_INVALID


@pytest.mark.parametrize("text", ["$share", "$shared/g/x", "$SHARE/g/x", "x/$share/g/y"])
def test_a_filter_that_resembles_a_shared_subscription_is_a_filter(text: str) -> None:
    assert parse_filter(text) == (None, text)


# ---------------------------------------------------------------- to keys and back

KEYS = [
    ("a/b/c", "a.b.c"),
    ("/", "."),
    ("//a", "..a"),
    ("a.b/c", "a%2Eb.c"),
    ("*", "%2A"),
    ("a%2Eb", "a%252Eb"),
    ("100%", "100%25"),
    ("$SYS/x", "$SYS.x"),
]


@pytest.mark.parametrize(("topic", "key"), KEYS)
def test_topics_and_their_routing_keys(topic: str, key: str) -> None:
    assert REVERSIBLE.routing_key(topic) == key
    assert REVERSIBLE.topic(key) == topic


@given(topics)
def test_every_topic_is_restored_from_its_key(topic: str) -> None:
    assert REVERSIBLE.topic(REVERSIBLE.routing_key(topic)) == topic


@given(topics, topics)
def test_different_topics_have_different_keys(one: str, other: str) -> None:
    assume(one != other)
    assert REVERSIBLE.routing_key(one) != REVERSIBLE.routing_key(other)


@given(filters)
def test_every_filter_is_restored_from_its_binding_key(filter: str) -> None:
    assert REVERSIBLE.filter(REVERSIBLE.binding_key(filter)) == filter


@given(topics)
def test_a_filter_without_wildcards_has_the_key_of_its_topic(topic: str) -> None:
    assert REVERSIBLE.binding_key(topic) == REVERSIBLE.routing_key(topic)
    assert LOSSY.binding_key(topic) == LOSSY.routing_key(topic)


@given(st.text(st.sampled_from("ab./*+#%25EA\0") | st.characters(codec="utf-8"), max_size=30))
def test_every_key_of_another_protocol_has_a_valid_topic(key: str) -> None:
    check_topic(REVERSIBLE.topic(key))
    check_topic(LOSSY.topic(key))


@pytest.mark.parametrize(
    ("key", "topic"),
    [
        ("", "/"),
        ("a+b", "a%2Bb"),
        ("a.#", "a/%23"),
        ("a*b", "a*b"),
        ("a/b", "a/b"),
        ("%41.%2", "%41/%2"),
        ("%2e", "%2e"),
        ("a\0", "a%00"),
        ("a%2Bb", "a%2Bb"),
    ],
)
def test_invalid_characters_are_escaped_and_unknown_escapes_are_kept(key: str, topic: str) -> None:
    assert REVERSIBLE.topic(key) == topic


@pytest.mark.parametrize(
    ("key", "filter"), [("*.a", "+/a"), ("#", "#"), ("a*", "a*"), ("%2A", "*"), ("a.%2E.*.#", "a/./+/#")]
)
def test_only_whole_words_are_wildcards(key: str, filter: str) -> None:
    assert REVERSIBLE.filter(key) == filter


def matches(filter: str, topic: str) -> bool:
    """Match as in 4.7, level by level, except for topics that start with ``$``."""
    wanted, levels = filter.split("/"), topic.split("/")
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index >= len(levels) or level not in ("+", levels[index]):
            return False
    return len(wanted) == len(levels)


@given(filters, topics)
def test_keys_match_exactly_when_the_filter_matches_the_topic(filter: str, topic: str) -> None:
    trie: TopicTrie[str, str] = TopicTrie()
    trie.insert(REVERSIBLE.binding_key(filter), "s", filter)
    assert bool(trie.match(REVERSIBLE.routing_key(topic))) == matches(filter, topic)


@given(st.lists(st.sampled_from(["", "a", "b", ".", "*"]), min_size=1, max_size=4), st.data())
def test_filters_derived_from_the_topic_match_alike(levels: list[str], data: st.DataObject) -> None:
    topic = "/".join(levels) or "/"
    swapped = [data.draw(st.sampled_from([level, "+", "a"])) for level in topic.split("/")]
    kept = data.draw(st.integers(0, len(swapped)))
    filter = "/".join(data.draw(st.sampled_from([swapped, [*swapped[:kept], "#"]]))) or "/"
    trie: TopicTrie[str, str] = TopicTrie()
    trie.insert(REVERSIBLE.binding_key(filter), "s", filter)
    assert bool(trie.match(REVERSIBLE.routing_key(topic))) == matches(filter, topic)


@pytest.mark.parametrize(
    ("topic", "key", "back"), [("a/b", "a.b", "a/b"), ("a.b/c", "a.b.c", "a/b/c"), ("a*/b", "a*.b", "a*/b")]
)
def test_the_lossy_mapping_turns_a_dot_into_a_level_separator(topic: str, key: str, back: str) -> None:
    assert LOSSY.routing_key(topic) == key
    assert LOSSY.topic(key) == back


@pytest.mark.parametrize("mapping", [REVERSIBLE, LOSSY])
def test_filters_without_dots_and_stars_are_the_same_in_both(mapping: TopicMapping) -> None:
    assert mapping.binding_key("a/+/b/#") == "a.*.b.#"
    assert mapping.filter("a.*.b.#") == "a/+/b/#"
