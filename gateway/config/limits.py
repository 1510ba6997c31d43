"""The limits of a node: how much of each thing there may be."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section

Limit = Annotated[int, Field(ge=0, le=1_000_000_000)]


class LimitSettings(Section):
    """How many of each there may be; 0 is no limit. Virtual hosts and users may have other limits of their own."""

    connections_per_vhost: Limit = 50_000
    """Connections in one virtual host. The virtual host's own limit is ``max-connections``."""

    connections_per_user: Limit = 50_000
    """Connections of one user. The user's own limit is ``max-connections``."""

    channels_per_user: Limit = 100_000
    """AMQP channels of one user. The user's own limit is ``max-channels``."""

    queues_per_vhost: Limit = 200_000
    """Queues in one virtual host. The virtual host's own limit is ``max-queues``."""

    bindings_per_vhost: Limit = 1_000_000
    """Bindings in one virtual host. The virtual host's own limit is ``max-bindings``."""

    consumers_per_vhost: Limit = 200_000
    """Consumers of AMQP and STOMP in one virtual host. The virtual host's own limit is ``max-consumers``."""

    queues_per_user: Limit = 200_000
    """Queues that one user made, in all virtual hosts. The user's own limit is ``max-queues``."""

    bindings_per_user: Limit = 1_000_000
    """Bindings that one user made, in all virtual hosts. The user's own limit is ``max-bindings``."""

    consumers_per_user: Limit = 200_000
    """Consumers of AMQP and STOMP of one user, in all virtual hosts. The user's own limit is ``max-consumers``."""

    consumers_per_channel: Limit = 10_000
    """Consumers of one AMQP channel, and subscriptions of one STOMP connection."""

    exclusive_queues_per_connection: Limit = 25_000
    """Exclusive queues of one connection."""

    unauthenticated_connections: Limit = 5_000
    """Connections of AMQP, MQTT and STOMP that have not logged in; beyond it the oldest of them is closed."""
