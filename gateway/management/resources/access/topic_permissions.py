"""/topic-permissions: the permissions of users for routing keys of topic exchanges."""

from collections.abc import Callable

from gateway.kernel.journal.records.access import TopicPermissionRecord
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require, text
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Reply, Routes, put_reply
from gateway.management.resources.access.permissions import require_vhost_and_user

routes = Routes()


@routes.get("/topic-permissions", level=AccessLevel.ADMINISTRATOR)
def topic_permissions(call: Call) -> Listing[TopicPermissionRecord]:
    """List all topic permissions."""
    return topic_permission_listing(call, lambda permission: True)


@routes.get("/topic-permissions/<vhost>/<user>", level=AccessLevel.ADMINISTRATOR)
def of_user(call: Call, vhost: str, user: str) -> Listing[TopicPermissionRecord]:
    """List the topic permissions of a user in a virtual host."""
    _existing(call, vhost, user)
    return topic_permission_listing(call, lambda each: (each.vhost, each.user) == (vhost, user))


@routes.put("/topic-permissions/<vhost>/<user>", level=AccessLevel.ADMINISTRATOR)
def put_topic_permission(call: Call, vhost: str, user: str) -> Reply:
    """Set the topic permissions of a user for one exchange."""
    fields = call.fields
    require(fields, "exchange", "write", "read")
    exchange, write, read = (text(fields, name) for name in ("exchange", "write", "read"))
    require_vhost_and_user(call, vhost, user)
    existed = bool(call.broker.directory.topic_permissions_of(vhost, user))  # for any exchange, as in RabbitMQ
    call.broker.directory.put_topic_permission(TopicPermissionRecord(vhost, user, exchange, write, read))
    return put_reply(existed)


@routes.delete("/topic-permissions/<vhost>/<user>", level=AccessLevel.ADMINISTRATOR)
def delete_all(call: Call, vhost: str, user: str) -> None:
    """Delete the topic permissions of a user in a virtual host, which allows all routing keys."""
    for permission in _existing(call, vhost, user):
        call.broker.directory.remove_topic_permission(vhost, user, permission.exchange)


@routes.delete("/topic-permissions/<vhost>/<user>/<exchange>", level=AccessLevel.ADMINISTRATOR)
def delete_one(call: Call, vhost: str, user: str, exchange: str) -> None:
    """Delete the topic permissions of a user for one exchange, which allows all routing keys."""
    _existing(call, vhost, user)
    call.broker.directory.remove_topic_permission(vhost, user, exchange)


def topic_permission_listing(
    call: Call, predicate: Callable[[TopicPermissionRecord], bool]
) -> Listing[TopicPermissionRecord]:
    """List the topic permissions that match."""
    chosen = [permission for permission in call.broker.directory.topic_permissions if predicate(permission)]
    return Listing(chosen, topic_permission_view, lambda each: (each.user, each.vhost), is_paged=False)


def topic_permission_view(permission: TopicPermissionRecord) -> Fields:
    """Return the view of a topic permission."""
    return {
        "user": permission.user,
        "vhost": permission.vhost,
        "exchange": permission.exchange,
        "write": permission.write,
        "read": permission.read,
    }


def _existing(call: Call, vhost: str, user: str) -> list[TopicPermissionRecord]:
    permissions = call.broker.directory.topic_permissions_of(vhost, user)
    if not permissions:
        raise missing()
    return permissions
