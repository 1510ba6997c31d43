"""/mqtt: MQTT sessions and retained messages. RabbitMQ has no such resource."""

from collections.abc import Callable
from typing import Final

from gateway.access import Operation, Permissions
from gateway.kernel.messages.message import Message
from gateway.kernel.sessions.retained import RetainedMessage
from gateway.kernel.sessions.session import NEVER_S, Session
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.context import TopicNames
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import forbidden, missing
from gateway.management.http.listing import Listing, with_columns
from gateway.management.http.routes import Fields, Routes
from gateway.management.views.times import timestamp

routes = Routes()

_SESSION: Final = "/mqtt/sessions/<vhost>/<client_id>"
_RETAINED: Final = "/mqtt/retained/<vhost>/<topic>"
_DEFAULT_REASON: Final = "Session ended via management plugin"


# Sessions


@routes.get("/mqtt/sessions")
def sessions(call: Call) -> Listing[tuple[VirtualHost, Session]]:
    """List the sessions of all virtual hosts that the user may see."""
    return _session_listing(call.visible_vhosts())


@routes.get("/mqtt/sessions/<vhost>")
def sessions_in_vhost(call: Call, vhost: str) -> Listing[tuple[VirtualHost, Session]]:
    """List the sessions of a virtual host."""
    return _session_listing([call.vhost(vhost)])


@routes.get(_SESSION)
def session(call: Call, vhost: str, client_id: str) -> Fields:
    """Return a session with its subscriptions."""
    virtual_host = call.vhost(vhost)
    found = _existing_session(virtual_host, client_id)
    details = {"subscription_details": _subscriptions(found), "may_end": _may_end(call, virtual_host, found)}
    return with_columns(_session_view(virtual_host, found) | details, call.query)


@routes.delete(_SESSION)
def end_session(call: Call, vhost: str, client_id: str) -> None:
    """End a session and delete its messages, like its queues.

    If its client is connected, only an administrator may do this, as for closing the connection of another user.
    """
    virtual_host = call.writable_vhost(vhost)
    found = _existing_session(virtual_host, client_id)
    for level in (0, 1):
        call.permissions(virtual_host).require(Operation.CONFIGURE, "queue", found.own_queue_name(level))
    if found.holder is not None:
        call.require(AccessLevel.ADMINISTRATOR)
    virtual_host.sessions.expel(found, call.headers.get("x-reason") or _DEFAULT_REASON)


def _may_end(call: Call, vhost: VirtualHost, session: Session) -> bool:
    """Return whether ``end_session`` is permitted to the user."""
    permissions = call.permissions_or_none(vhost)
    if permissions is None or (session.holder is not None and not call.may(AccessLevel.ADMINISTRATOR)):
        return False
    return all(permissions.may(Operation.CONFIGURE, session.own_queue_name(level), "queue") for level in (0, 1))


def _session_listing(vhosts: list[VirtualHost]) -> Listing[tuple[VirtualHost, Session]]:
    chosen = [(vhost, session) for vhost in vhosts for session in vhost.sessions]
    return Listing(chosen, lambda each: _session_view(*each), lambda each: (each[0].name, each[1].client_id))


def _existing_session(vhost: VirtualHost, client_id: str) -> Session:
    found = vhost.sessions.get(client_id)
    if found is None:
        raise missing()
    return found


def _session_view(vhost: VirtualHost, session: Session) -> Fields:
    """Return the view of a session. Message counts include its own queues, not those of shared subscriptions."""
    own = session.own_queues()
    return {
        "client_id": session.client_id,
        "vhost": vhost.name,
        "user": session.user or None,
        "connected": session.holder is not None,
        "durable": session.is_durable,
        "expiry_s": None if session.expiry_s >= NEVER_S else session.expiry_s,
        "subscriptions": session.subscription_count,
        "queues": [queue.name for queue in session.queues()],
        "messages_ready": sum(len(queue) for queue in own),
        "messages_unacknowledged": sum(queue.unsettled for queue in own),
    }


def _subscriptions(session: Session) -> list[Fields]:
    return [
        {
            "filter": each.filter,
            "qos": each.qos,
            "no_local": each.no_local,
            "retain_as_published": each.retain_as_published,
            "subscription_identifier": each.identifier or None,
            "queue": session.queue_name(each),
        }
        for each in session.subscribed
    ]


# Retained messages


@routes.get("/mqtt/retained/<vhost>")
def retained(call: Call, vhost: str) -> Listing[RetainedMessage]:
    """List the retained messages of a virtual host that the user may read, except the broker's own."""
    virtual_host, topics = call.vhost(vhost), call.context.topics_of(vhost)
    may_read, permissions = _reader(call, virtual_host), call.permissions_or_none(virtual_host)
    return Listing(
        virtual_host.retained.steps(),
        lambda retained: _retained_view(virtual_host, topics, retained, permissions),
        lambda retained: (virtual_host.name, topics.topic(retained.message.routing_key)),
        is_visible=lambda retained: not retained.is_transient and may_read(retained.message),
    )


@routes.get(_RETAINED)
def retained_message(call: Call, vhost: str, topic: str) -> Fields:
    """Return a retained message without its body."""
    virtual_host = call.vhost(vhost)
    topics, retained = call.context.topics_of(vhost), _existing_message(call, virtual_host, topic)
    if not _reader(call, virtual_host)(retained.message):
        raise forbidden("Access refused.")
    permissions = call.permissions_or_none(virtual_host)
    return with_columns(_retained_view(virtual_host, topics, retained, permissions), call.query)


@routes.delete(_RETAINED)
def clear(call: Call, vhost: str, topic: str) -> None:
    """Delete the retained message of a topic; this needs the permission to publish to it."""
    virtual_host = call.writable_vhost(vhost)
    message = _existing_message(call, virtual_host, topic).message
    permissions = call.permissions(virtual_host)
    permissions.require(Operation.WRITE, "exchange", message.exchange)
    permissions.require_topic(Operation.WRITE, message.exchange, message.routing_key)
    virtual_host.retained.clear(message.routing_key)


def _reader(call: Call, vhost: VirtualHost) -> Callable[[Message], bool]:
    """Return a check of access to a retained message: by permission for subscribers, always for monitoring users."""
    if call.may(AccessLevel.MONITORING):
        return lambda message: True
    permissions = call.permissions(vhost)
    return lambda message: (
        permissions.may(Operation.READ, message.exchange)
        and permissions.may_use_topic(Operation.READ, message.exchange, message.routing_key)
    )


def _existing_message(call: Call, vhost: VirtualHost, topic: str) -> RetainedMessage:
    retained = vhost.retained.get(call.context.topics_of(vhost.name).routing_key(topic))
    if retained is None or retained.is_transient:
        raise missing()
    return retained


def _retained_view(
    vhost: VirtualHost, topics: TopicNames, retained: RetainedMessage, permissions: Permissions | None
) -> Fields:
    """Return the view of a retained message; ``payload_bytes`` is the size sent to each new subscriber.

    ``may_delete`` tells whether the permissions are enough for ``clear``.
    """
    message = retained.message
    may_delete = (
        permissions is not None
        and permissions.may(Operation.WRITE, message.exchange)
        and permissions.may_use_topic(Operation.WRITE, message.exchange, message.routing_key)
    )
    return {
        "topic": topics.topic(message.routing_key),
        "vhost": vhost.name,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "payload_bytes": len(message.body),
        "expires_at": timestamp(retained.expires_at_ms) if retained.expires_at_ms else None,
        "may_delete": may_delete,
    }
