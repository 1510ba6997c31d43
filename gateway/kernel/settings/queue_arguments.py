"""The arguments of queues, one row each, and their validation in a declaration with RabbitMQ's error texts (R37-R50).

To add an argument, add a row to ``QUEUE_ARGUMENTS``.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.bounds import LONGEST_MS, fault_of_key, require_arguments
from gateway.kernel.messages.message import Arguments, Value
from gateway.kernel.settings.arguments import type_name
from gateway.kernel.settings.max_age import age_ms
from gateway.kernel.settings.offered_settings import OfferedSettings

MOST_PRIORITIES: Final = 255

#: The largest segment size of a stream, in bytes.
LARGEST_SEGMENT: Final = 3_000_000_000

#: The range of the size of a segment's Bloom filter, in bytes.
SMALLEST_FILTER: Final = 16
LARGEST_FILTER: Final = 255

Check = Callable[[Value], str | None]
"""Returns the fault of a value, or ``None``."""


def _number(value: Value) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return f'"expected integer, got {type_name(value)}"'
    return None


def _integer(value: Value) -> str | None:
    wrong = _number(value)
    return f"{{value_negative,{value}}}" if wrong is None and isinstance(value, int) and value < 0 else wrong


def _duration(value: Value) -> str | None:
    wrong = _integer(value)
    if wrong is None and isinstance(value, int) and value > LONGEST_MS:
        return f"{{value_too_large,{value}}}"
    return wrong


def _lease(value: Value) -> str | None:
    return "{value_zero,0}" if value == 0 and not isinstance(value, bool | float) else _duration(value)


def _positive(value: Value) -> str | None:
    return "{value_zero,0}" if value == 0 and not isinstance(value, bool | float) else _integer(value)


def _durations(value: Value) -> str | None:
    if not isinstance(value, list):
        return _unacceptable(value)
    return next((wrong for each in value if (wrong := _duration(each)) is not None), None)


def _priorities(value: Value) -> str | None:
    wrong = _integer(value)
    if wrong is None and isinstance(value, int) and value > MOST_PRIORITIES:
        return f"{{max_value_exceeded,{value}}}"
    return wrong


def _version(value: Value) -> str | None:
    wrong = _integer(value)
    if wrong is None and value not in (1, 2):
        return f"\"unsupported queue version '{value!r}'\""
    return wrong


def _boolean(value: Value) -> str | None:
    return None if isinstance(value, bool) else _unacceptable(value)


def _key(value: Value) -> str | None:
    return fault_of_key(value) if isinstance(value, str) else _unacceptable(value)


def _age(value: Value) -> str | None:
    if not isinstance(value, str):
        return _unacceptable(value)
    return "invalid_max_age" if age_ms(value) is None else None


def _unchecked(value: Value) -> str | None:
    return None


def _one_of(*allowed: str, otherwise: Callable[[str], str]) -> Check:
    def check(value: Value) -> str | None:
        if not isinstance(value, str):
            return _unacceptable(value)
        return None if value in allowed else otherwise(value)

    return check


def _unacceptable(value: Value) -> str:
    return f"{{unacceptable_type,{type_name(value)}}}"


#: The queue types that support an argument.
ANY: Final = frozenset({"classic", "quorum", "stream"})
NO_STREAM: Final = frozenset({"classic", "quorum"})
CLASSIC: Final = frozenset({"classic"})
QUORUM: Final = frozenset({"quorum"})
STREAM: Final = frozenset({"stream"})


class QueueArgument(NamedTuple):
    """The check of an argument's value, and the queue types that support it.

    A redeclaration must repeat it if it ``is_compared``.
    """

    check: Check
    types: frozenset[str] = NO_STREAM
    is_compared: bool = True


#: Every known argument, in the order of comparison. As in RabbitMQ, others may have any value and may differ in a
#: redeclaration (R49; rabbit_amqqueue: declare_args).
QUEUE_ARGUMENTS: Final[Mapping[str, QueueArgument]] = {
    "x-expires": QueueArgument(_lease),
    "x-message-ttl": QueueArgument(_duration),
    "x-dead-letter-exchange": QueueArgument(_unchecked),  # ``require_valid`` checks it before all others
    "x-dead-letter-routing-key": QueueArgument(_key),
    "x-dead-letter-strategy": QueueArgument(
        _one_of("at-most-once", "at-least-once", otherwise=lambda value: "invalid_dlx_strategy"), QUORUM
    ),
    "x-max-length": QueueArgument(_integer),
    "x-max-length-bytes": QueueArgument(_integer, ANY),
    "x-max-in-memory-length": QueueArgument(_integer, QUORUM),
    "x-max-in-memory-bytes": QueueArgument(_integer, QUORUM),
    "x-max-priority": QueueArgument(_priorities, CLASSIC),
    "x-overflow": QueueArgument(
        _one_of("drop-head", "reject-publish", "reject-publish-dlx", otherwise=lambda value: "invalid_overflow")
    ),
    "x-queue-mode": QueueArgument(
        _one_of("default", "lazy", otherwise=lambda value: f"\"unsupported queue mode '{value}'\""), CLASSIC
    ),
    "x-queue-version": QueueArgument(_version, CLASSIC),
    "x-single-active-consumer": QueueArgument(_boolean),
    "x-queue-type": QueueArgument(
        _one_of("classic", "quorum", "stream", otherwise=lambda value: f"\"unsupported queue type '{value}'\""), ANY
    ),
    "x-quorum-initial-group-size": QueueArgument(_lease, QUORUM),
    "x-delivery-limit": QueueArgument(_number),
    "x-max-age": QueueArgument(_age, STREAM),
    "x-stream-max-segment-size-bytes": QueueArgument(_integer, STREAM),
    "x-stream-filter-size-bytes": QueueArgument(_number, STREAM, is_compared=False),
    "x-initial-cluster-size": QueueArgument(_lease, STREAM),
    "x-queue-leader-locator": QueueArgument(
        _one_of(
            "client-local", "balanced", "least-leaders", "random", otherwise=lambda value: "invalid_queue_locator_arg"
        ),
        ANY,
    ),
    # not in RabbitMQ, or only in its plugins
    "x-consumer-timeout": QueueArgument(_lease, ANY),
    "x-expire-mode": QueueArgument(
        _one_of("head", "anywhere", otherwise=lambda value: f"\"unsupported expire mode '{value}'\"")
    ),
    "x-delayed-delivery": QueueArgument(_boolean),
    "x-message-deduplication": QueueArgument(_boolean),
    "x-cache-size": QueueArgument(_positive),
    "x-cache-ttl": QueueArgument(_lease),
    "x-retry-delays": QueueArgument(_durations),
}

#: The arguments that a redeclaration must repeat.
COMPARED: Final = tuple(name for name, argument in QUEUE_ARGUMENTS.items() if argument.is_compared)


def require_valid(entity: str, arguments: Arguments, offered: OfferedSettings) -> None:
    """Check the arguments of a declaration. ``entity`` is for example ``queue 'q' in vhost '/'``.

    Arguments that neither the broker nor a plugin knows pass (R49).

    :raises PreconditionFailed: with the argument and its fault.
    """
    require_arguments(entity, arguments)
    exchange = arguments.get("x-dead-letter-exchange", "")
    if not isinstance(exchange, str):
        raise PreconditionFailed(f"invalid type '{type_name(exchange)}' for arg 'x-dead-letter-exchange' in {entity}")
    if fault := fault_of_key(exchange):
        raise PreconditionFailed(f"invalid arg 'x-dead-letter-exchange' for {entity}: {fault}")
    queue_type = str(arguments.get("x-queue-type", "classic"))
    for name, value in arguments.items():
        argument = QUEUE_ARGUMENTS.get(name) or _offered_argument(name, offered)
        if argument is None:
            continue
        if queue_type in ANY and queue_type not in argument.types:
            raise PreconditionFailed(f"invalid arg '{name}' for {entity} of queue type rabbit_{queue_type}_queue")
        wrong = argument.check(value)
        if wrong is None and name == "x-dead-letter-routing-key" and "x-dead-letter-exchange" not in arguments:
            wrong = "routing_key_but_no_dlx_defined"
        if wrong is not None:
            raise PreconditionFailed(f"invalid arg '{name}' for {entity}: {wrong}")


def _offered_argument(name: str, offered: OfferedSettings) -> QueueArgument | None:
    """Return the row of an argument that a plugin offers; ``None`` if none does."""
    setting = name.removeprefix("x-")
    if setting == name or setting not in offered:
        return None
    return QueueArgument(lambda value: offered.fault_of(setting, value))


def require_possible(
    entity: str, arguments: Arguments, *, is_durable: bool, is_exclusive: bool, is_auto_delete: bool
) -> None:
    """Check that a quorum queue or a stream is durable and neither exclusive nor auto-delete (R141).

    :raises PreconditionFailed: with the reason.
    """
    if arguments.get("x-queue-type") not in ("quorum", "stream"):
        return
    for is_impossible, property in (
        (is_exclusive, "exclusive-owner"),
        (not is_durable, "non-durable"),
        (is_auto_delete, "auto-delete"),
    ):
        if is_impossible:
            raise PreconditionFailed(f"invalid property '{property}' for {entity}")
    _require_bounded(arguments)


def _require_bounded(arguments: Arguments) -> None:
    segment = arguments.get("x-stream-max-segment-size-bytes")
    if isinstance(segment, int) and segment > LARGEST_SEGMENT:
        raise PreconditionFailed("Exceeded max value for x-stream-max-segment-size-bytes")
    size = arguments.get("x-stream-filter-size-bytes")
    if isinstance(size, int) and not SMALLEST_FILTER <= size <= LARGEST_FILTER:
        raise PreconditionFailed("Invalid value for x-stream-filter-size-bytes")
