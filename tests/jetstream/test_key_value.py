"""Buckets of keys and values: writes with and without an expected revision, deletions, watches."""

import pytest

from gateway_jetstream.errors import WrongLastSequence
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.key_value import KeyValue, KeyValueEntry
from gateway_jetstream.jetstream.publishing import JetStreamPublisher
from tests.jetstream.places import JetStreamPlace


def test_a_bucket_keeps_the_last_write_of_each_key(place: JetStreamPlace) -> None:
    client = place.client()
    api = JetStreamApi(client)
    bucket = KeyValue(api, JetStreamPublisher(client), place.loop.reactor, "keys")
    place.run(api.create_stream(bucket.config(3)))
    assert place.run(bucket.get("a.b")) is None
    first = place.run(bucket.put("a.b", b"one", 30.0))
    second = place.run(bucket.put("a.b", b"two", 30.0, expected=first))
    with pytest.raises(WrongLastSequence):
        place.run(bucket.put("a.b", b"three", 30.0, expected=first))
    assert place.run(bucket.put("c", b"once", 30.0, message_id="m")) == second + 1
    assert place.run(bucket.put("c", b"once", 30.0, message_id="m")) == second + 1
    seen: list[KeyValueEntry] = []
    watch = bucket.watch("a.>", seen.append, lambda: None)
    place.until(lambda: seen)
    with pytest.raises(WrongLastSequence):
        place.run(bucket.delete("a.b", 30.0, expected=first))
    deleted = place.run(bucket.delete("a.b", 30.0, expected=second))
    place.until(lambda: len(seen) == 2)
    watch.stop()
    assert seen == [KeyValueEntry("a.b", b"two", second), KeyValueEntry("a.b", None, deleted)]
    assert place.run(bucket.get("a.b")) == seen[-1]
