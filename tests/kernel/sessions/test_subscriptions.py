"""Subscriptions of a session, and the terms on which a message is delivered to it."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.sessions.subscriptions import Subscriptions, Terms, may_match
from tests.kernel.session_clients import subscription_to


def binding_key(topic: str) -> str:
    return topic.replace("/", ".")


def subscriptions_of(*records: SubscriptionRecord) -> Subscriptions:
    subscriptions = Subscriptions()
    for subscription in records:
        subscriptions.put(subscription)
    return subscriptions


def terms_for(topic: str, *records: SubscriptionRecord) -> Terms:
    terms = subscriptions_of(*records).terms(binding_key(topic))
    assert terms is not None
    return terms


# ---- Matching of filters (4.7) ---------------------------------------------------------------------------------------

MATCHES: Final = [
    ("a/b", "a/b", True),
    ("a/b", "a/b/c", False),
    ("a/b", "a", False),
    ("+", "a", True),
    ("+", "a/b", False),
    ("+", "/a", False),
    ("/+", "/a", True),
    ("+/+", "/a", True),
    ("a/+", "a/", True),
    ("a/+", "a", False),
    ("a/+/c", "a/b/c", True),
    ("#", "a/b/c", True),
    ("a/#", "a", True),
    ("a/#", "a/b/c", True),
    ("a/#", "ab", False),
    ("a/+/#", "a", False),
    ("#", "$SYS/uptime", False),
    ("+/uptime", "$SYS/uptime", False),
    ("$SYS/#", "$SYS/uptime", True),
    ("$SYS/+", "$SYS/uptime", True),
    ("+/$SYS", "a/$SYS", True),
    ("#", "a/$SYS", True),
]


@pytest.mark.parametrize(("filter", "topic", "matches"), MATCHES, ids=lambda value: str(value))
def test_a_subscription_matches_topics_as_specified(filter: str, topic: str, matches: bool) -> None:
    assert (subscriptions_of(subscription_to(filter)).terms(binding_key(topic)) is not None) == matches


def test_a_wildcard_character_inside_a_word_is_literal() -> None:
    exact = SubscriptionRecord("/", "sensor", "a*", "", "a*", 1)
    assert subscriptions_of(exact).terms("a*") is not None
    assert subscriptions_of(exact).terms("ab") is None


@pytest.mark.parametrize("key", ["#", "*.x", "#.x"])
def test_broker_topics_match_only_explicit_filters(key: str) -> None:
    assert not may_match(key, "$SYS.x")
    assert may_match("$SYS." + key, "$SYS.x")


# ---- Terms of delivery -----------------------------------------------------------------------------------------------


def test_overlapping_subscriptions_deliver_once_with_the_highest_qos_and_all_identifiers() -> None:
    terms = terms_for(
        "a/b", subscription_to("a/+", 0, identifier=3), subscription_to("a/#", 2, identifier=9), subscription_to("#", 1)
    )
    assert terms.qos == 2
    assert sorted(terms.identifiers) == [3, 9]
    assert not terms.is_plain


def test_the_retain_flag_is_kept_if_one_subscription_requests_it() -> None:
    assert not terms_for("a", subscription_to("a"), subscription_to("+")).retain_as_published
    assert terms_for("a", subscription_to("a"), subscription_to("+", retain_as_published=True)).retain_as_published


def test_terms_are_plain_without_identifiers_and_no_local() -> None:
    assert terms_for("a", subscription_to("a", 0), subscription_to("#", 2)).is_plain


def test_no_local_on_all_matching_subscriptions_excludes_own_messages() -> None:
    terms = terms_for("a", subscription_to("a", no_local=True), subscription_to("#", no_local=True))
    assert terms.own is None
    assert not terms.is_plain


def test_own_messages_have_the_terms_of_subscriptions_without_no_local() -> None:
    terms = terms_for("a", subscription_to("a", 2, no_local=True, identifier=1), subscription_to("#", 0, identifier=2))
    assert terms.own is not None
    assert (terms.own.qos, terms.own.identifiers) == (0, (2,))
    assert terms.own.own is terms.own


def test_a_shared_subscription_is_kept_and_matches_no_own_message() -> None:
    subscriptions = subscriptions_of(subscription_to("$share/g/a"))
    assert len(subscriptions) == 1
    assert subscriptions.terms("a") is None


# ---- Changes ---------------------------------------------------------------------------------------------------------


def test_a_subscription_with_the_same_filter_replaces_the_first() -> None:
    subscriptions = subscriptions_of(subscription_to("a/+", 2, identifier=1), subscription_to("a/+", 0, identifier=2))
    terms = subscriptions.terms("a.b")
    assert terms is not None
    assert (len(subscriptions), terms.qos, terms.identifiers) == (1, 0, (2,))


def test_cached_terms_change_with_the_subscriptions() -> None:
    subscriptions = subscriptions_of(subscription_to("a"))
    assert subscriptions.terms("a") is not None
    assert subscriptions.terms("b") is None
    subscriptions.put(subscription_to("+", 2))
    assert subscriptions.terms("b") is not None
    removed = subscriptions.remove("+")
    assert removed is not None
    assert removed.qos == 2
    assert subscriptions.terms("b") is None
    assert subscriptions.remove("+") is None


def test_many_subscriptions_are_matched_like_few() -> None:
    subscriptions = subscriptions_of(*(subscription_to(f"site/{number}/+", number % 3) for number in range(100)))
    found = [subscriptions.terms(f"site.{number}.x") for number in range(4)]
    assert [None if terms is None else terms.qos for terms in found] == [0, 1, 2, 0]
    assert subscriptions.terms("site.100.x") is None


def test_the_cache_of_terms_is_bounded() -> None:
    subscriptions = subscriptions_of(subscription_to("#"))
    for number in range(1000):
        assert subscriptions.terms(f"t{number}") is not None
    assert len(subscriptions._terms) <= 256


# ---- Model -----------------------------------------------------------------------------------------------------------

_WORDS: Final = st.sampled_from(["a", "b", "", "$s", "a*"])
TOPICS: Final = st.lists(_WORDS, min_size=1, max_size=4).map("/".join).filter(bool)
FILTERS: Final = st.builds(
    lambda levels, ends_open: "/".join([*levels, "#"] if ends_open else levels),
    st.lists(_WORDS | st.just("+"), min_size=1, max_size=3),
    st.booleans(),
).filter(bool)


def matches(filter: str, topic: str) -> bool:
    """Match a topic against a filter as in section 4.7, word by word."""
    if topic.startswith("$") and filter[0] in "+#":
        return False
    wanted, levels = filter.split("/"), topic.split("/")
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index == len(levels) or level not in ("+", levels[index]):
            return False
    return len(wanted) == len(levels)


@given(
    st.lists(st.tuples(FILTERS, st.integers(0, 2), st.booleans(), st.integers(0, 3)), max_size=8),
    st.lists(FILTERS, max_size=3),
    st.lists(TOPICS, min_size=1, max_size=5),
)
def test_terms_combine_all_matching_filters(
    requested: list[tuple[str, int, bool, int]], removed_filters: list[str], topics: list[str]
) -> None:
    subscriptions = Subscriptions()
    model: dict[str, tuple[int, bool, int]] = {}
    for filter, qos, no_local, identifier in requested:
        subscriptions.put(subscription_to(filter, qos, no_local=no_local, identifier=identifier))
        model[filter] = (qos, no_local, identifier)
        subscriptions.terms(binding_key(topics[0]))
    for filter in removed_filters:
        assert (subscriptions.remove(filter) is None) == (model.pop(filter, None) is None)
    for topic in topics:
        matching = [terms for filter, terms in model.items() if matches(filter, topic)]
        terms = subscriptions.terms(binding_key(topic))
        assert (terms is None) == (not matching)
        if terms is not None:
            assert terms.qos == max(qos for qos, _, _ in matching)
            assert sorted(terms.identifiers) == sorted(identifier for _, _, identifier in matching if identifier)
            own = [qos for qos, no_local, _ in matching if not no_local]
            assert (None if terms.own is None else terms.own.qos) == max(own, default=None)
            same = subscriptions.terms_of_a_match(binding_key(topic))
            assert same is not None
            assert (same.qos, same.identifiers, same.is_plain) == (terms.qos, terms.identifiers, terms.is_plain)
