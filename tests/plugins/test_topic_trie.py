"""The trie agrees with the definition of the wildcards, forgets what is removed, and stays quick on bad patterns."""

import tracemalloc
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.routing.topic_trie import TopicTrie

WORDS = st.sampled_from(["a", "b", "", "*", "#"])
FILTERS = st.lists(WORDS, max_size=5).map(".".join)


def matches(filter: list[str], topic: list[str]) -> bool:
    """The definition, word by word."""
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
def test_a_topic_may_ask_for_filters_that_begin_with_its_word(filters: list[str], topic: str) -> None:
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
def test_what_was_removed_matches_no_more_and_the_rest_still_does(kept: list[str], gone: list[str], topic: str) -> None:
    trie: TopicTrie[object, str] = TopicTrie()
    for number, filter in enumerate(kept):
        trie.insert(filter, ("kept", number), "kept")
    for number, filter in enumerate(gone):
        trie.insert(filter, ("gone", number), "gone")
    for number, filter in enumerate(gone):
        assert trie.remove(filter, ("gone", number)) == "gone"
    assert trie.match(topic) == ["kept" for filter in kept if matches(words(filter), words(topic))]


@given(filters=st.lists(FILTERS, max_size=8))
def test_nothing_is_left_of_an_emptied_trie(filters: list[str]) -> None:
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
def test_removing_what_is_not_there_is_a_key_error_and_changes_nothing(filter: str) -> None:
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
def test_the_letters_are_a_choice(filter: str, topic: str, is_match: bool) -> None:
    trie: TopicTrie[int, bool] = TopicTrie(separator="/", one="+", any="#")
    trie.insert(filter, 0, True)
    assert bool(trie.match(topic)) is is_match


def test_many_wildcards_against_a_long_topic_do_not_explode() -> None:
    trie: TopicTrie[int, str] = TopicTrie()
    trie.insert(".".join(["#", "a"] * 12), 0, "twelve")
    topic = ".".join(["a"] * 100)
    started = process_time()
    assert trie.match(topic) == ["twelve"]
    assert trie.match(topic + ".b") == []
    # A matcher that tries the ways one by one needs 100 over 12, some 10^15 steps.
    assert process_time() - started < 1


def test_a_wildcard_in_a_topic_is_a_plain_word() -> None:
    trie: TopicTrie[int, str] = TopicTrie()
    trie.insert("a.b", 0, "b")
    trie.insert("*", 1, "one word")
    assert trie.match("a.*") == []
    assert trie.match("#") == ["one word"]


def test_a_filter_of_very_many_words_takes_a_bounded_amount_of_memory() -> None:
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
