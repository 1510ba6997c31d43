"""Passwords in the URIs of parameters: replaced when shown, kept when what was shown is written back."""

import time

import pytest

from gateway.definitions.secrets import UnknownSecret, has_mask, restored, shown

STORED = {"src-uri": ["amqp://u:one@a", "amqps://u:two@b/%2F?verify=verify_none"], "dest-uri": "amqp://v:three@c"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqp://user:secret@host/vhost", "amqp://user:***@host/vhost"),
        ("amqp://user:se@cret@host:5672/%2F?heartbeat=1", "amqp://user:***@host:5672/%2F?heartbeat=1"),
        ("amqp://us@er:secret@host", "amqp://us@er:***@host"),
        ("amqp://user:sec/ret@host", "amqp://user:***@host"),
        ("amqps://:secret@host", "amqps://:***@host"),
        ("amqp://user:@host", "amqp://user:***@host"),
        ("mqtt://a:b@c mqtt://d:e@f", "mqtt://a:***@c mqtt://d:***@f"),
        ("amqp://user@host", "amqp://user@host"),
        ("http://host:80/user@x", "http://host:80/user@x"),
        ("amqp://", "amqp://"),
        ("user:secret@host", "user:secret@host"),
        ("amqp:// a:b@c", "amqp:// a:b@c"),
    ],
)
def test_the_password_of_a_uri_is_replaced(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_passwords_are_replaced_at_any_depth() -> None:
    assert shown({"a": [{"b": "amqp://u:p@h"}, 5, None]}) == {"a": [{"b": "amqp://u:***@h"}, 5, None]}


def test_what_was_shown_becomes_what_was_stored() -> None:
    assert restored(shown(STORED), STORED, "s") == STORED


def test_uris_may_be_put_in_another_order_and_other_keys_may_change() -> None:
    changed = {"src-uri": ["amqps://u:***@b/%2F?verify=verify_none", "amqp://u:***@a"], "prefetch-count": 5}
    assert restored(changed, STORED, "s") == {
        "src-uri": [STORED["src-uri"][1], STORED["src-uri"][0]],
        "prefetch-count": 5,
    }


@pytest.mark.parametrize("uri", ["amqp://v:***@elsewhere", "amqp://w:***@c"])
def test_a_stored_password_is_never_sent_elsewhere(uri: str) -> None:
    with pytest.raises(UnknownSecret, match=r"^shovel 's', dest-uri: the URI"):
        restored({"dest-uri": uri}, STORED, "shovel 's'")


def test_the_options_of_a_uri_may_change() -> None:
    changed = {"src-uri": ["amqp://u:***@a?heartbeat=5", "amqps://u:***@b/%2F"], "dest-uri": "amqp://v:***@c?"}
    assert restored(changed, STORED, "s") == {
        "src-uri": ["amqp://u:one@a?heartbeat=5", "amqps://u:two@b/%2F"],
        "dest-uri": "amqp://v:three@c?",
    }


def test_a_new_password_is_kept() -> None:
    assert restored({"dest-uri": "amqp://v:new@c"}, STORED, "s") == {"dest-uri": "amqp://v:new@c"}


def test_a_password_of_asterisks_can_be_written_percent_encoded() -> None:
    assert restored("amqp://v:%2A%2A%2A@c", None, "s") == "amqp://v:%2A%2A%2A@c"


def test_masks_are_found_at_any_depth() -> None:
    assert has_mask({"a": [shown("amqp://u:p@h")]})
    assert not has_mask(STORED)


def test_replacing_takes_time_linear_in_the_length() -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        shown("://a:b" * count + "@")
        return time.process_time() - began

    seconds(1000)
    assert seconds(200_000) < 2
