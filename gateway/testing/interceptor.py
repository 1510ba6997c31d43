"""The contract of ``gateway.api.Interceptor`` as a check for any interceptor.

No broker runs. An interceptor's own tests cover what it decides; this check covers that every decision is valid,
whatever the message, and that messages are not modified in place.
"""

from collections.abc import Collection, Sequence
from typing import Final, get_args

from gateway.kernel.budget import SLOW_S
from gateway.kernel.interception.interceptor import Diversion, Interceptor, OnError, Refusal, problem_of_interceptor
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.testing.call_timer import CallTimer, is_slower
from gateway.testing.unusual_messages import content_of, described, unusual_messages

ORIGINS: Final = (
    Origin("127.0.0.1:5001 -> 127.0.0.1:5672", 3, "guest", "amqp091"),
    Origin("127.0.0.1:5002 -> 127.0.0.1:1883", 0, "guest", "MQTT 5.0", "sensor-1"),
    Origin("", 0, "", "mqtt", "sensor-1"),  # a will
    Origin("", 0, "guest", "HTTP"),
)

#: An error of a client shows a reason of at most so many bytes (AMQP 0-9-1: the reply text with its name).
LONGEST_REASON: Final = 200


def check_interceptor(interceptor: Interceptor, messages: Sequence[Message] = ()) -> None:
    """Check an interceptor with unusual messages, and with ``messages`` of its own kind.

    :raises AssertionError: with a sentence that names the broken promise.
    """
    if interceptor.on_error not in get_args(OnError):
        raise AssertionError(f"on_error must be one of {', '.join(get_args(OnError))}, not {interceptor.on_error!r}.")
    if (problem := problem_of_interceptor(interceptor)) is not None:
        raise AssertionError(f"{problem}.")
    for message in (_inspected(each, interceptor) for each in (*unusual_messages(), *messages)):
        for origin in ORIGINS:
            before = content_of(message)
            _check_publish(interceptor, message, origin)
            _check_repetition(interceptor, message, origin)
            _check_deliver(interceptor, message, origin)
            if content_of(message) != before:
                raise AssertionError(f"The interceptor modified {described(message)} in place; return an edited copy.")


def _inspected(message: Message, interceptor: Interceptor) -> Message:
    """Return a message as one with an exchange and a routing key that the interceptor declares."""
    exchange = _declared(message.exchange, interceptor.exchanges)
    routing_key = _declared(message.routing_key, interceptor.routing_keys)
    if (exchange, routing_key) == (message.exchange, message.routing_key):
        return message
    return message.with_address(exchange, routing_key, message.header)


def _declared(name: str, names: Collection[str] | None) -> str:
    return name if not names or name in names else min(names)


def _check_publish(interceptor: Interceptor, message: Message, origin: Origin) -> None:
    timer = CallTimer()
    try:
        decision = interceptor.on_publish(message, origin)
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"on_publish() raised {error!r} for {described(message)}.") from error
    if is_slower(lambda: interceptor.on_publish(message, origin), timer.seconds, SLOW_S):
        raise AssertionError(f"on_publish() takes longer than {SLOW_S * 1000:g} ms for {described(message)}.")
    if isinstance(decision, Refusal):
        if not decision.reason or len(decision.reason.encode()) > LONGEST_REASON:
            raise AssertionError(
                f"on_publish() refused {described(message)} with a reason that is empty or longer than "
                f"{LONGEST_REASON} bytes: {decision.reason!r}."
            )
    elif isinstance(decision, Diversion):
        if not isinstance(decision.exchange, str) or not isinstance(decision.routing_key, str):
            raise AssertionError(f"on_publish() diverted {described(message)} to {decision}, whose names are no text.")
    elif not isinstance(decision, Message):
        raise AssertionError(f"on_publish() returned {decision!r} for {described(message)}, which is no decision.")
    elif decision.exchange != message.exchange:
        raise AssertionError(f"on_publish() moved {described(message)} to another exchange; that needs a Diversion.")


def _check_repetition(interceptor: Interceptor, message: Message, origin: Origin) -> None:
    """Check that the answer for a message is also the one for a message with another body, if that is declared."""
    if not interceptor.decides_by_header:
        return
    first, other = message, Message(message.exchange, message.routing_key, message.header, message.body + b"other")
    outcomes = [_without_body(interceptor.on_publish(each, origin), each) for each in (first, other, first)]
    if outcomes[0] is None or outcomes.count(outcomes[0]) != len(outcomes):
        raise AssertionError(
            f"decides_by_header is declared, but on_publish() decides about {described(message)} by more than its "
            "header, or changes more."
        )


def _without_body(decision: object, message: Message) -> object:
    """Return what a decision says about the header; ``None`` for a message with another body or routing key."""
    if not isinstance(decision, Message):
        return decision
    is_kept = decision.body == message.body and decision.routing_key == message.routing_key
    return (decision.header.format.name, decision.header.raw) if is_kept else None


def _check_deliver(interceptor: Interceptor, message: Message, origin: Origin) -> None:
    try:
        delivered = interceptor.on_deliver(message, "queue", origin)
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"on_deliver() raised {error!r} for {described(message)}.") from error
    if not isinstance(delivered, Message):
        raise AssertionError(f"on_deliver() returned {delivered!r} for {described(message)}, which is not a Message.")
