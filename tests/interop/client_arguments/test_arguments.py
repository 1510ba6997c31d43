"""The checks of ``gateway.clients``: values out of range, and the arguments that it writes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from gateway.clients import (
    DeduplicationRule,
    message_headers,
    queue_arguments,
    stream_arguments,
    stream_consumer_arguments,
    text_headers,
)
from gateway.kernel.settings.queue_arguments import QUEUE_ARGUMENTS


def test_what_is_not_given_is_left_out() -> None:
    assert queue_arguments() == message_headers() == stream_consumer_arguments() == {}
    assert stream_arguments() == {"x-queue-type": "stream"}


def test_each_argument_is_one_of_the_broker() -> None:
    every = queue_arguments(
        type="classic", delayed=True, retry_delays=[1], delivery_limit=5, deduplication=DeduplicationRule(1, 1),
        message_ttl=0, expire_anywhere=True, expires=1, max_length=1, max_length_bytes=1, reject_when_full=True,
        max_priority=5, single_active_consumer=True, dead_letter_exchange="", dead_letter_routing_key="k",
    )  # fmt: skip
    every |= stream_arguments(max_age=1, max_bytes=1, segment_bytes=1)
    assert every.keys() <= QUEUE_ARGUMENTS.keys()
    assert len(every) == 19


def test_own_headers_stay_and_texts_are_texts() -> None:
    headers = message_headers({"own": 1}, delay=timedelta(milliseconds=1500), stream_filter_value="eu")
    assert headers == {"own": 1, "x-delay": 1500, "x-stream-filter-value": "eu"}
    assert text_headers(headers) == [("own", "1"), ("x-delay", "1500"), ("x-stream-filter-value", "eu")]


def test_booleans_are_texts_of_json() -> None:
    assert text_headers({"a": True, "b": False}) == [("a", "true"), ("b", "false")]


def test_an_age_is_a_text_and_a_moment_stays_one() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert stream_consumer_arguments(timedelta(hours=1)) == {"x-stream-offset": "3600s"}
    assert stream_consumer_arguments(moment) == {"x-stream-offset": moment}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: message_headers(delay=-1), "delay must be a time of 0 ms to ten years, not -1"),
        (lambda: message_headers(delay=float("nan")), "delay must be a time"),
        (lambda: message_headers(delay=float("inf")), "delay must be a time"),
        (lambda: queue_arguments(expires=0), "expires must be a time of 1 ms to ten years, not 0"),
        (lambda: queue_arguments(retry_delays=[1, -1]), "retry_delays must be a time"),
        (lambda: queue_arguments(max_priority=0), "max_priority must be 1 to 255, not 0"),
        (lambda: queue_arguments(reject_when_full=True), "reject_when_full needs max_length or max_length_bytes"),
        (lambda: queue_arguments(dead_letter_routing_key="k"), "needs a dead_letter_exchange"),
        (lambda: queue_arguments(deduplication=DeduplicationRule(size=0)), "size must be 1 to"),
        (lambda: stream_arguments(max_bytes=0), "max_bytes must be 1 to"),
        (lambda: stream_consumer_arguments(-1), "start must be 0 to 9223372036854775807, not -1"),
        (lambda: queue_arguments(max_priority=256), "max_priority must be 1 to 255, not 256"),
        (lambda: queue_arguments(max_length=-5), "max_length must be 0 to"),
        (lambda: queue_arguments(max_length_bytes=-1), "max_length_bytes must be 0 to"),
        (lambda: queue_arguments(delivery_limit=True), "delivery_limit must be 0 to"),
        (lambda: queue_arguments(message_ttl=1e12), "message_ttl must be a time of 0 ms to ten years"),
        (lambda: queue_arguments(message_ttl=0.0004), "message_ttl must be a time"),
        (lambda: queue_arguments(message_ttl=True), "message_ttl must be a time in seconds, not True"),
        (lambda: queue_arguments(type=cast(Any, "foo")), "type must be 'classic' or 'quorum', not 'foo'"),
        (lambda: stream_arguments(max_age=1.9), "max_age must be whole seconds, not 1.9"),
        (lambda: stream_consumer_arguments(cast(Any, "bogus")), "start must be one of first, last, next, not 'bogus'"),
        (lambda: stream_consumer_arguments(True), "start must be 0 to"),
        (lambda: stream_consumer_arguments(2**63), "start must be 0 to"),
        (lambda: text_headers({"a": b"x"}), "a must be a text, a number or a boolean, not b'x'"),
        (lambda: stream_consumer_arguments(timedelta(0)), "start must be an age of a second or more"),
        (lambda: stream_consumer_arguments(datetime(2026, 1, 1)), "start must have a time zone"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_name(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()
