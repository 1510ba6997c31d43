"""Subscriptions that begin and end during a run: what is promised to them."""

import pytest

from gateway.simulation.publishes import Fate, Published
from gateway.simulation.subscriptions import TopicSubscriptions
from gateway.simulation.topics import filter_of, matches


def topics() -> tuple[TopicSubscriptions, dict[str, Published]]:
    published: dict[str, Published] = {}
    return TopicSubscriptions(published), published


def publish(subscriptions: TopicSubscriptions, all: dict[str, Published], publisher: str = "p") -> Published:
    published = Published(publisher, len(all) + 1, set(), topic_key="a.b")
    all[f"{publisher}:{published.number}"] = published
    subscriptions.published(published)
    return published


def test_a_publish_after_the_answer_is_promised() -> None:
    subscriptions, all = topics()
    subscriptions.open("s", "a.*").is_promised = True
    assert publish(subscriptions, all).places == {"s"}


def test_a_publish_under_way_while_the_subscription_begins_may_come_or_not() -> None:
    subscriptions, all = topics()
    before, decided = publish(subscriptions, all), publish(subscriptions, all)
    decided.fate = Fate.CONFIRMED
    subscriptions.open("s", "a.*")
    during = publish(subscriptions, all)
    assert before.perhaps == during.perhaps == {"s"}
    assert not decided.perhaps | before.places | during.places


def test_a_publish_under_way_while_the_subscription_ends_may_come_or_not() -> None:
    subscriptions, all = topics()
    subscription = subscriptions.open("s", "a.*")
    subscription.is_promised = True
    before = publish(subscriptions, all)
    subscriptions.close(subscription)
    subscriptions.remove(subscription)
    after = publish(subscriptions, all)
    assert (before.places, before.perhaps) == (set(), {"s"})
    assert not after.places | after.perhaps


def test_a_subscription_that_is_there_is_not_added_again() -> None:
    subscriptions, _ = topics()
    assert subscriptions.open("s", "a.*") is subscriptions.open("s", "a.*")


def test_no_local_excludes_the_client_s_own_publishes() -> None:
    subscriptions, all = topics()
    subscriptions.open("s", "a.*", not_from="p").is_promised = True
    assert not publish(subscriptions, all).places
    assert publish(subscriptions, all, "other").places == {"s"}


@pytest.mark.parametrize(
    ("pattern", "key", "is_match"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.a", False),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("*.b", "a.b", True),
        ("a.#", "a.b.c", True),
        ("a.#", "a", True),
        ("a.b.#", "a", False),
        ("#", "a.b", True),
    ],
)
def test_patterns_match_keys(pattern: str, key: str, is_match: bool) -> None:
    assert matches(pattern, key) is is_match


def test_a_pattern_has_an_mqtt_filter() -> None:
    assert filter_of("a.*.#") == "a/+/#"
