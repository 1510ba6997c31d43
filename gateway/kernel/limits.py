"""How many connections, channels and queues there may be: limits of virtual hosts and of users, in RabbitMQ's words.

A limit that is absent or negative is none. Nothing is counted while nothing is limited.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from gateway.kernel.bounds import LARGEST_COUNT, LEAST_INTEGER
from gateway.kernel.errors import NotAllowed, PreconditionFailed
from gateway.kernel.message import Value

if TYPE_CHECKING:
    from gateway.kernel.broker import Broker
    from gateway.kernel.connections import Peer

VHOST_LIMITS: Final = ("max-connections", "max-queues")
USER_LIMITS: Final = ("max-connections", "max-channels")


def require_valid_limits(what: str, names: tuple[str, ...], limits: Mapping[str, Value]) -> None:
    """Refuse limits that are unknown or no numbers. ``what`` reads ``user-limits``.

    :raises PreconditionFailed: in RabbitMQ's words.
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


def limit_of(limits: Mapping[str, Value], name: str) -> int | None:
    """Return a limit, ``None`` for none."""
    limit = limits.get(name)
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0 else None


def require_room_for_queue(vhost_name: str, limits: Mapping[str, Value], name: str, count: int) -> None:
    """Refuse one more queue where there are ``count`` already. :raises PreconditionFailed: at the limit."""
    limit = limit_of(limits, "max-queues")
    if limit is not None and count >= limit:
        raise PreconditionFailed(
            f"cannot declare queue '{name}': queue limit in vhost '{vhost_name}' ({limit}) is reached"
        )


def require_room_for_connection(broker: "Broker", vhost_name: str, user_name: str) -> None:
    """Refuse one more connection of a user to a virtual host. :raises NotAllowed: at the limit of either."""
    limit = limit_of(broker.vhost(vhost_name).record.limits, "max-connections")
    if limit is not None and sum(peer.vhost_name == vhost_name for peer in broker.connections) >= limit:
        raise NotAllowed(
            f"access to vhost '{vhost_name}' refused for user '{user_name}': connection limit ({limit}) is reached"
        )
    limit = _user_limit(broker, user_name, "max-connections")
    if limit is not None and sum(1 for _ in _in_use(broker, user_name)) >= limit:
        raise NotAllowed(f"connection refused for user '{user_name}': user connection limit ({limit}) is reached")


def require_room_for_channel(broker: "Broker", user_name: str) -> None:
    """Refuse one more channel of a user. :raises NotAllowed: at the limit."""
    limit = _user_limit(broker, user_name, "max-channels")
    if limit is not None and sum(peer.channel_count for peer in _in_use(broker, user_name)) >= limit:
        raise NotAllowed(
            f"number of channels opened for user '{user_name}' has reached the maximum allowed user limit of ({limit})"
        )


def _user_limit(broker: "Broker", user_name: str, name: str) -> int | None:
    user = broker.directory.user(user_name)
    return None if user is None else limit_of(user.limits, name)


def _in_use(broker: "Broker", user_name: str) -> "Iterable[Peer]":
    """The user's connections that are in a virtual host already."""
    return (peer for peer in broker.connections if peer.user_name == user_name and peer.vhost_name)
