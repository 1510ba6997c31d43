"""What a session asked for, and on which terms a message is delivered to it."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.journal.records import SubscriptionRecord
from gateway.kernel.sessions.subscriptions import Subscriptions, Terms, may_match
from tests.kernel.session_clients import subscribed


def keyed(topic: str) -> str:
    return topic.replace("/", ".")


def with_these(*subscriptions: SubscriptionRecord) -> Subscriptions:
    kept = Subscriptions()
    for subscription in subscriptions:
        kept.put(subscription)
    return kept


def terms_for(topic: str, *subscriptions: SubscriptionRecord) -> Terms:
    terms = with_these(*subscriptions).terms(keyed(topic))
    assert terms is not None
    return terms


# ---- Which filters match (4.7) ---------------------------------------------------------------------------------------

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
def test_a_message_is_wanted_if_a_filter_matches_its_topic(filter: str, topic: str, matches: bool) -> None:
    assert (with_these(subscribed(filter)).terms(keyed(topic)) is not None) == matches


def test_a_wildcard_inside_a_word_is_a_letter() -> None:
    exact = SubscriptionRecord("/", "sensor", "a*", "", "a*", 1)
    assert with_these(exact).terms("a*") is not None
    assert with_these(exact).terms("ab") is None


@pytest.mark.parametrize("key", ["#", "*.x", "#.x"])
def test_topics_of_the_server_are_for_those_who_ask_for_them(key: str) -> None:
    assert not may_match(key, "$SYS.x")
    assert may_match("$SYS." + key, "$SYS.x")


# ---- On which terms --------------------------------------------------------------------------------------------------


def test_overlapping_subscriptions_deliver_once_with_the_highest_qos_and_all_identifiers() -> None:
    terms = terms_for("a/b", subscribed("a/+", 0, identifier=3), subscribed("a/#", 2, identifier=9), subscribed("#", 1))
    assert terms.qos == 2
    assert sorted(terms.identifiers) == [3, 9]
    assert not terms.is_plain


def test_a_message_is_shown_as_retained_if_one_subscription_wants_that() -> None:
    assert not terms_for("a", subscribed("a"), subscribed("+")).retain_as_published
    assert terms_for("a", subscribed("a"), subscribed("+", retain_as_published=True)).retain_as_published


def test_without_identifiers_and_no_local_every_message_looks_as_to_others() -> None:
    assert terms_for("a", subscribed("a", 0), subscribed("#", 2)).is_plain


def test_who_wants_nothing_of_its_own_gets_nothing_of_its_own() -> None:
    terms = terms_for("a", subscribed("a", no_local=True), subscribed("#", no_local=True))
    assert terms.own is None
    assert not terms.is_plain


def test_who_wants_some_of_its_own_gets_it_on_the_terms_of_the_others() -> None:
    terms = terms_for("a", subscribed("a", 2, no_local=True, identifier=1), subscribed("#", 0, identifier=2))
    assert terms.own is not None
    assert (terms.own.qos, terms.own.identifiers) == (0, (2,))
    assert terms.own.own is terms.own


def test_what_is_shared_with_a_group_is_kept_and_matches_nothing_here() -> None:
    kept = with_these(subscribed("$share/g/a"))
    assert len(kept) == 1
    assert kept.terms("a") is None


# ---- Changes ---------------------------------------------------------------------------------------------------------


def test_another_subscription_under_the_same_filter_replaces_the_first() -> None:
    kept = with_these(subscribed("a/+", 2, identifier=1), subscribed("a/+", 0, identifier=2))
    terms = kept.terms("a.b")
    assert terms is not None
    assert (len(kept), terms.qos, terms.identifiers) == (1, 0, (2,))


def test_terms_that_were_asked_for_before_change_with_the_subscriptions() -> None:
    kept = with_these(subscribed("a"))
    assert kept.terms("a") is not None
    assert kept.terms("b") is None
    kept.put(subscribed("+", 2))
    assert kept.terms("b") is not None
    removed = kept.remove("+")
    assert removed is not None
    assert removed.qos == 2
    assert kept.terms("b") is None
    assert kept.remove("+") is None


def test_many_subscriptions_are_told_apart_as_few_are() -> None:
    kept = with_these(*(subscribed(f"site/{number}/+", number % 3) for number in range(100)))
    found = [kept.terms(f"site.{number}.x") for number in range(4)]
    assert [None if terms is None else terms.qos for terms in found] == [0, 1, 2, 0]
    assert kept.terms("site.100.x") is None


def test_many_topics_do_not_gather_in_memory() -> None:
    kept = with_these(subscribed("#"))
    for number in range(1000):
        assert kept.terms(f"t{number}") is not None
    assert len(kept._terms) <= 256


# ---- Compared with the plainest matching -----------------------------------------------------------------------------

_WORDS: Final = st.sampled_from(["a", "b", "", "$s", "a*"])
TOPICS: Final = st.lists(_WORDS, min_size=1, max_size=4).map("/".join).filter(bool)
FILTERS: Final = st.builds(
    lambda levels, ends_open: "/".join([*levels, "#"] if ends_open else levels),
    st.lists(_WORDS | st.just("+"), min_size=1, max_size=3),
    st.booleans(),
).filter(bool)


def matches(filter: str, topic: str) -> bool:
    """Section 4.7, word by word."""
    if topic.startswith("$") and filter[0] in "+#":
        return False
    wanted, levels = filter.split("/"), topic.split("/")
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place == len(levels) or level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)


@given(
    st.lists(st.tuples(FILTERS, st.integers(0, 2), st.booleans(), st.integers(0, 3)), max_size=8),
    st.lists(FILTERS, max_size=3),
    st.lists(TOPICS, min_size=1, max_size=5),
)
def test_terms_are_those_of_all_filters_that_match(
    asked: list[tuple[str, int, bool, int]], given_up: list[str], topics: list[str]
) -> None:
    kept = Subscriptions()
    model: dict[str, tuple[int, bool, int]] = {}
    for filter, qos, no_local, identifier in asked:
        kept.put(subscribed(filter, qos, no_local=no_local, identifier=identifier))
        model[filter] = (qos, no_local, identifier)
        kept.terms(keyed(topics[0]))
    for filter in given_up:
        assert (kept.remove(filter) is None) == (model.pop(filter, None) is None)
    for topic in topics:
        matching = [terms for filter, terms in model.items() if matches(filter, topic)]
        terms = kept.terms(keyed(topic))
        assert (terms is None) == (not matching)
        if terms is not None:
            assert terms.qos == max(qos for qos, _, _ in matching)
            assert sorted(terms.identifiers) == sorted(identifier for _, _, identifier in matching if identifier)
            own = [qos for qos, no_local, _ in matching if not no_local]
            assert (None if terms.own is None else terms.own.qos) == max(own, default=None)
            same = kept.terms_of_a_match(keyed(topic))
            assert same is not None
            assert (same.qos, same.identifiers, same.is_plain) == (terms.qos, terms.identifiers, terms.is_plain)
