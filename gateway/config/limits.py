"""Node-wide limits on the number of connections, channels, queues, bindings and consumers."""

from typing import Annotated

from pydantic import Field

from gateway.config.kinds import Live
from gateway.config.section import Section

Limit = Annotated[int, Field(ge=0, le=1_000_000_000)]


class LimitSettings(Section):
    """Maximum numbers; 0 is no limit. A virtual host or a user may have its own limits."""

    connections_per_vhost: Live[Limit] = 50_000
    """Connections in one virtual host. The virtual host's own limit is ``max-connections``."""

    connections_per_user: Live[Limit] = 50_000
    """Connections of one user. The user's own limit is ``max-connections``."""

    channels_per_user: Live[Limit] = 100_000
    """AMQP channels of one user. The user's own limit is ``max-channels``."""

    queues_per_vhost: Live[Limit] = 200_000
    """Queues in one virtual host. The virtual host's own limit is ``max-queues``."""

    bindings_per_vhost: Live[Limit] = 1_000_000
    """Bindings in one virtual host. The virtual host's own limit is ``max-bindings``."""

    consumers_per_vhost: Live[Limit] = 200_000
    """AMQP and STOMP consumers in one virtual host. The virtual host's own limit is ``max-consumers``."""

    queues_per_user: Live[Limit] = 200_000
    """Queues declared by one user, in all virtual hosts. The user's own limit is ``max-queues``."""

    bindings_per_user: Live[Limit] = 1_000_000
    """Bindings created by one user, in all virtual hosts. The user's own limit is ``max-bindings``."""

    consumers_per_user: Live[Limit] = 200_000
    """AMQP and STOMP consumers of one user, in all virtual hosts. The user's own limit is ``max-consumers``."""

    consumers_per_channel: Live[Limit] = 10_000
    """Consumers of one AMQP channel, and subscriptions of one STOMP connection."""

    exclusive_queues_per_connection: Live[Limit] = 25_000
    """Exclusive queues of one connection."""

    unauthenticated_connections: Live[Limit] = 5_000
    """AMQP, MQTT and STOMP connections that have not logged in; above it the oldest of them is closed."""
