"""Limits of connections, channels, queues, bindings and consumers.

Virtual hosts and users have limits of their own, with RabbitMQ's names; without one, the node's limit applies.
A negative limit means no limit, and so does 0 for the node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.bounds import LARGEST_COUNT, LEAST_INTEGER
from gateway.kernel.messages.message import Value

if TYPE_CHECKING:
    pass

#: The first two of each are those of RabbitMQ.
VHOST_LIMITS: Final = ("max-connections", "max-queues", "max-bindings", "max-consumers")
USER_LIMITS: Final = ("max-connections", "max-channels", "max-queues", "max-bindings", "max-consumers")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The node's limits of connections and channels; ``unauthenticated`` counts connections that have not logged in."""

    per_vhost: int = 0
    per_user: int = 0
    channels_per_user: int = 0
    unauthenticated: int = 0


def require_valid_limits(what: str, names: tuple[str, ...], limits: Mapping[str, Value]) -> None:
    """Check names and values of limits. ``what`` is for example ``user-limits``.

    :raises PreconditionFailed: with RabbitMQ's error text.
    """
    for name, value in limits.items():
        if name not in names:
            raise PreconditionFailed(
                f'Unrecognised terms [{{<<"{ascii(name)[1:-1][:80]}">>,{_brief(value)}}}] in {what}'
            )
        if isinstance(value, bool) or not isinstance(value, int):
            raise PreconditionFailed(f"{name} should be a number, actually was {_brief(value)}")
        if not LEAST_INTEGER <= value <= LARGEST_COUNT:
            raise PreconditionFailed(f"{name} is a number of more than 64 bits")


def _brief(value: Value) -> str:
    if isinstance(value, int) and not LEAST_INTEGER <= value <= LARGEST_COUNT:
        return "a number of more than 64 bits"
    return "..." if isinstance(value, dict | list) else ascii(value)[:80]


def limit_of(limits: Mapping[str, Value], name: str, default: int = 0) -> int | None:
    """Return a limit, ``None`` for none: that of these limits, or else the ``default``."""
    limit = limits.get(name)
    if not isinstance(limit, int) or isinstance(limit, bool):
        return default or None
    return limit if limit >= 0 else None


def require_room_for_queue(
    vhost_name: str, limits: Mapping[str, Value], name: str, count: int, default: int = 0
) -> None:
    """Check the queue limit for one more queue; ``count`` exist already. :raises PreconditionFailed: at the limit."""
    limit = limit_of(limits, "max-queues", default)
    if limit is not None and count >= limit:
        raise PreconditionFailed(
            f"cannot declare queue '{name}': queue limit in vhost '{vhost_name}' ({limit}) is reached"
        )


def require_room_for_exclusive(name: str, count: int, limit: int) -> None:
    """Check the limit of exclusive queues for one more. :raises PreconditionFailed: at the limit."""
    if limit and count >= limit:
        raise PreconditionFailed(
            f"cannot declare queue '{name}': limit of exclusive queues per connection ({limit}) is reached"
        )


def require_room_for_binding(vhost_name: str, limits: Mapping[str, Value], count: int, default: int = 0) -> None:
    """Check the binding limit for one more binding; ``count`` exist. :raises PreconditionFailed: at the limit."""
    limit = limit_of(limits, "max-bindings", default)
    if limit is not None and count >= limit:
        raise PreconditionFailed(f"cannot bind: binding limit in vhost '{vhost_name}' ({limit}) is reached")


def require_room_for_consumer(vhost_name: str, limits: Mapping[str, Value], count: int, default: int = 0) -> None:
    """Check the consumer limit for one more consumer; ``count`` exist. :raises PreconditionFailed: at the limit."""
    limit = limit_of(limits, "max-consumers", default)
    if limit is not None and count >= limit:
        raise PreconditionFailed(f"cannot consume: consumer limit in vhost '{vhost_name}' ({limit}) is reached")
