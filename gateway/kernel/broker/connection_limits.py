"""Limits on connections and channels, checked when one is opened."""

from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import NotAllowed
from gateway.kernel.settings.limits import limit_of


def require_room_for_connection(broker: Broker, vhost_name: str, user_name: str) -> None:
    """Check the limits before a connection to a virtual host opens. :raises NotAllowed: at the limit of either."""
    connections = broker.connections
    limits = broker.vhost(vhost_name).record.limits
    limit = limit_of(limits, "max-connections", connections.limits.per_vhost)
    if limit is not None and connections.count_in(vhost_name) >= limit:
        raise NotAllowed(
            f"access to vhost '{vhost_name}' refused for user '{user_name}': connection limit ({limit}) is reached"
        )
    limit = _user_limit(broker, user_name, "max-connections", connections.limits.per_user)
    if limit is not None and _count(broker, connections.count_of(user_name), "max-connections", user_name) >= limit:
        raise NotAllowed(f"connection refused for user '{user_name}': user connection limit ({limit}) is reached")


def require_room_for_channel(broker: Broker, user_name: str) -> None:
    """Check the limit before a user opens a channel. :raises NotAllowed: at the limit."""
    connections = broker.connections
    limit = _user_limit(broker, user_name, "max-channels", connections.limits.channels_per_user)
    if limit is not None and _count(broker, connections.channels_of(user_name), "max-channels", user_name) >= limit:
        raise NotAllowed(
            f"number of channels opened for user '{user_name}' has reached the maximum allowed user limit of ({limit})"
        )


def _count(broker: Broker, own: int, limit: str, user_name: str) -> int:
    """Return a count with that of other cells of a cluster."""
    return own + broker.user_tallies.elsewhere(limit, user_name)


def _user_limit(broker: Broker, user_name: str, name: str, default: int) -> int | None:
    user = broker.directory.user(user_name)
    return limit_of({} if user is None else user.limits, name, default)
