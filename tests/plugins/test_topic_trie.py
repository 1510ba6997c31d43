"""The topic trie matches by the definition of the wildcards, frees removed filters, and bounds the matching time."""

import tracemalloc
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.routing.topic_trie import TopicTrie

WORDS = st.sampled_from(["a", "b", "", "*", "#"])
FILTERS = st.lists(WORDS, max_size=5).map(".".join)


def matches(filter: list[str], topic: list[str]) -> bool:
    """Match by definition, word by word."""
    if not filter:
        return not topic
    if filter[0] == "#":
        return any(matches(filter[1:], topic[used:]) for used in range(len(topic) + 1))
    return bool(topic) and filter[0] in ("*", topic[0]) and matches(filter[1:], topic[1:])


def words(topic: str) -> list[str]:
    return topic.split(".") if topic else []


@given(filters=st.lists(FILTERS, max_size=8), topic=FILTERS)
def test_matching_agrees_with_the_definition(filters: list[str], topic: str) -> None:
    trie: TopicTrie[int, int] = TopicTrie()
    for number, filter in enumerate(filters):
        trie.insert(filter, number, number)
    expected = [number for number, filter in enumerate(filters) if matches(words(filter), words(topic))]
    assert sorted(trie.match(topic)) == expected


@given(filters=st.lists(FILTERS, max_size=8), topic=FILTERS)
def test_filters_that_start_with_a_word_of_the_topic_can_be_matched_alone(filters: list[str], topic: str) -> None:
    trie: TopicTrie[int, int] = TopicTrie()
    for number, filter in enumerate(filters):
        trie.insert(filter, number, number)
    expected = [
        number
        for number, filter in enumerate(filters)
        if filter.partition(".")[0] not in ("*", "#") and filter and matches(words(filter), words(topic))
    ]
    assert sorted(trie.match(topic, begins_with_its_word=True)) == expected


@given(kept=st.lists(FILTERS, max_size=6), gone=st.lists(FILTERS, max_size=6), topic=FILTERS)
def test_removed_filters_match_no_more_and_the_others_still_do(kept: list[str], gone: list[str], topic: str) -> None:
    trie: TopicTrie[object, str] = TopicTrie()
    for number, filter in enumerate(kept):
        trie.insert(filter, ("kept", number), "kept")
    for number, filter in enumerate(gone):
        trie.insert(filter, ("gone", number), "gone")
    for number, filter in enumerate(gone):
        assert trie.remove(filter, ("gone", number)) == "gone"
    assert trie.match(topic) == ["kept" for filter in kept if matches(words(filter), words(topic))]


@given(filters=st.lists(FILTERS, max_size=8))
def test_an_emptied_trie_has_no_nodes(filters: list[str]) -> None:
    trie: TopicTrie[int, int] = TopicTrie()
    for number, filter in enumerate(filters):
        trie.insert(filter, number, number)
        assert trie
    for number, filter in enumerate(filters):
        trie.remove(filter, number)
    assert not trie


def test_the_same_key_under_the_same_filter_is_replaced() -> None:
    trie: TopicTrie[str, int] = TopicTrie()
    trie.insert("a.*", "subscriber", 0)
    trie.insert("a.*", "subscriber", 1)
    assert trie.match("a.b") == [1]


@pytest.mark.parametrize("filter", ["a.b", "a", "a.b.c", "*", "#", ""])
def test_removing_an_unknown_filter_raises_key_error_and_changes_nothing(filter: str) -> None:
    trie: TopicTrie[str, int] = TopicTrie()
    trie.insert("a.b", "there", 1)
    with pytest.raises(KeyError):
        trie.remove(filter, "not there")
    assert trie.match("a.b") == [1]


@pytest.mark.parametrize(
    ("filter", "topic", "is_match"),
    [
        ("sensors/+/temperature", "sensors/kitchen/temperature", True),
        ("sensors/+", "sensors", False),
        ("sensors/#", "sensors", True),
        ("sensors/#", "sensors/a/b", True),
        ("a.*", "a.b", False),
    ],
)
def test_separator_and_wildcards_can_be_chosen(filter: str, topic: str, is_match: bool) -> None:
    trie: TopicTrie[int, bool] = TopicTrie(separator="/", one="+", any="#")
    trie.insert(filter, 0, True)
    assert bool(trie.match(topic)) is is_match


def test_the_time_to_match_many_wildcards_is_bounded() -> None:
    trie: TopicTrie[int, str] = TopicTrie()
    trie.insert(".".join(["#", "a"] * 12), 0, "twelve")
    topic = ".".join(["a"] * 100)
    started = process_time()
    assert trie.match(topic) == ["twelve"]
    assert trie.match(topic + ".b") == []
    # A matcher that tries all combinations needs 100 over 12, some 10^15 steps.
    assert process_time() - started < 1


def test_a_wildcard_in_a_topic_is_an_ordinary_word() -> None:
    trie: TopicTrie[int, str] = TopicTrie()
    trie.insert("a.b", 0, "b")
    trie.insert("*", 1, "one word")
    assert trie.match("a.*") == []
    assert trie.match("#") == ["one word"]


def test_a_filter_with_many_words_uses_bounded_memory() -> None:
    trie: TopicTrie[int, int] = TopicTrie()
    deep = "." * 65_000
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    trie.insert(deep, 1, 1)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < 500_000
    trie.insert("#", 2, 2)
    assert sorted(trie.match(deep)) == [1, 2]
    assert trie.match(deep + "x") == [2]
    trie.remove(deep, 1)
    assert trie.match(deep) == [2]
