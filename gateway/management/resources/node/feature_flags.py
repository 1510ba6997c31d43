"""/feature-flags: RabbitMQ's feature flags, all of which are enabled."""

from typing import Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, Routes

routes = Routes()

#: Flags of the compatible RabbitMQ version, with their descriptions.
FLAGS: Final = {
    "classic_mirrored_queue_version": "Support setting version for classic mirrored queues",
    "drop_unroutable_metric": "Count unroutable publishes to be dropped in stats",
    "empty_basic_get_metric": "Count AMQP `basic.get` on empty queues in stats",
    "implicit_default_bindings": "Default bindings are now implicit, instead of being stored in the database",
    "maintenance_mode_status": "Maintenance mode status",
    "quorum_queue": "Support queues of type `quorum`",
    "user_limits": "Configure connection and channel limits for a user",
    "virtual_host_metadata": "Virtual host metadata (description, tags, etc)",
}


@routes.get("/feature-flags", level=AccessLevel.ADMINISTRATOR)
def flags(call: Call) -> list[Fields]:
    """List the flags."""
    return [
        {
            "name": name,
            "desc": description,
            "doc_url": "",
            "state": "enabled",
            "stability": "stable",
            "provided_by": "rabbit",
        }
        for name, description in FLAGS.items()
    ]


@routes.put("/feature-flags/<name>/enable", level=AccessLevel.ADMINISTRATOR)
def enable(call: Call, name: str) -> None:
    """Enable a flag; all are already enabled."""
    if name not in FLAGS:
        raise bad_request("unsupported")
