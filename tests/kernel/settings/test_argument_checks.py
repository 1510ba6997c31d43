"""Validation of queue arguments (R37-R50), with RabbitMQ's error texts."""

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.settings.arguments import type_name
from gateway.kernel.vhosts.virtual_host import VirtualHost

ACCEPTED = [
    pytest.param("x-expires", 1, id="R37: a millisecond"),
    pytest.param("x-message-ttl", 0, id="R40: nothing"),
    pytest.param("x-message-ttl", 315_360_000_000, id="R40: ten years"),
    pytest.param("x-dead-letter-exchange", "dlx", id="R41: need not exist"),
    pytest.param("x-max-length", 0, id="R42: no message"),
    pytest.param("x-max-length-bytes", 2**40, id="R42: a terabyte"),
    pytest.param("x-overflow", "drop-head", id="R43: drop-head"),
    pytest.param("x-overflow", "reject-publish", id="R43: reject-publish"),
    pytest.param("x-overflow", "reject-publish-dlx", id="R43: reject-publish-dlx"),
    pytest.param("x-single-active-consumer", True, id="R44: a boolean"),
    pytest.param("x-max-priority", 255, id="R45: the most"),
    pytest.param("x-queue-mode", "lazy", id="R46: lazy"),
    pytest.param("x-queue-version", 1, id="R47: the old one"),
    pytest.param("x-unheard-of", [1, {"a": None}], id="R49: unknown"),
]


@pytest.mark.parametrize(("name", "value"), ACCEPTED)
def test_a_valid_argument_is_accepted(vhost: VirtualHost, name: str, value: Value) -> None:
    assert vhost.declare_queue("q", arguments={name: value}).arguments == {name: value}


REFUSED = [
    pytest.param("x-expires", 0, "{value_zero,0}", id="R37: no time"),
    pytest.param("x-expires", -1, "{value_negative,-1}", id="R37: negative"),
    pytest.param("x-expires", "1", '"expected integer, got longstr"', id="R37: text"),
    pytest.param("x-message-ttl", -1, "{value_negative,-1}", id="R40: negative"),
    pytest.param("x-message-ttl", 315_360_000_001, "{value_too_large,315360000001}", id="R40: over ten years"),
    pytest.param("x-message-ttl", True, '"expected integer, got bool"', id="R40: a boolean"),
    pytest.param("x-dead-letter-exchange", 5, "invalid type 'signedint'", id="R41: no name"),
    pytest.param("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined", id="R41: a key alone"),
    pytest.param("x-max-length", -1, "{value_negative,-1}", id="R42: negative"),
    pytest.param("x-overflow", "drop-tail", "invalid_overflow", id="R43: another"),
    pytest.param("x-overflow", 1, "{unacceptable_type,signedint}", id="R43: a number"),
    pytest.param("x-single-active-consumer", "yes", "{unacceptable_type,longstr}", id="R44: text"),
    pytest.param("x-max-priority", 256, "{max_value_exceeded,256}", id="R45: too many"),
    pytest.param("x-queue-mode", "eager", "unsupported queue mode 'eager'", id="R46: another"),
    pytest.param("x-queue-version", 3, "unsupported queue version '3'", id="R47: not yet"),
]


@pytest.mark.parametrize(("name", "value", "words"), REFUSED)
def test_an_invalid_argument_is_refused(vhost: VirtualHost, name: str, value: Value, words: str) -> None:
    """The error has the argument's name, and no queue is declared."""
    with pytest.raises(PreconditionFailed) as refused:
        vhost.declare_queue("q", arguments={name: value})
    assert name in str(refused.value)
    assert "queue 'q' in vhost '/'" in str(refused.value)
    assert words in str(refused.value)
    assert vhost.queue_by_name == {}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "signedint"),
        (2**31, "long"),
        (True, "bool"),
        ("", "longstr"),
        (0.5, "double"),
        (None, "void"),
        ([], "array"),
    ],
)
def test_value_types_have_the_names_of_rabbitmq(value: Value, name: str) -> None:
    assert type_name(value) == name
