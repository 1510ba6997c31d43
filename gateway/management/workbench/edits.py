"""Changes of messages in requests: headers, properties, routing key and body."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.workbench.actions import Edit
from gateway.management.http.bodies import text
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.message_checks import require_deliverable
from gateway.management.messages import body_of, properties_of
from gateway.management.permission_checks import IMPERSONATOR
from gateway.management.workbench.filters import require_known

_FIELDS: Final = frozenset({"headers", "properties", "routing_key", "payload", "payload_encoding"})
_PROPERTIES: Final = frozenset(field.name for field in fields(Properties)) - {"headers"}


def edit_of(call: Call, value: object) -> Edit | None:
    """Return the edit in a request, ``None`` for none. A header or property with the value ``null`` is removed.

    :raises HttpError: if it is invalid, with the name of the field.
    :raises PreconditionFailed: if an edited message could not be delivered.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise bad_request("changes: must be an object")
    require_known("changes", value, _FIELDS)
    if not value:
        raise bad_request("changes: is empty")
    headers, without = _parts("changes.headers", value.get("headers"))
    changed, unset = _parts("changes.properties", value.get("properties"))
    require_known("changes.properties", {**changed, **dict.fromkeys(unset)}, _PROPERTIES)
    properties = properties_of({**changed, "headers": headers})
    routing_key = text(value, "routing_key") if "routing_key" in value else None
    body = body_of(text(value, "payload"), text(value, "payload_encoding", "string")) if "payload" in value else None
    if body is None and "payload_encoding" in value:
        raise bad_request("changes.payload_encoding: has no effect without payload")
    _require_allowed(call, properties, routing_key, body)
    set_properties = {name: getattr(properties, name) for name in changed} | dict.fromkeys(unset)

    def edit(message: Message) -> Message:
        if not set_properties:
            return message.edited(headers, without=without, body=body, routing_key=routing_key)
        former = message.header.format.properties(message.header.stored_raw)
        kept = {name: each for name, each in former.headers.items() if name not in without}
        header = native_header(replace(former, **set_properties, headers=kept | headers))
        key = message.routing_key if routing_key is None else routing_key
        return Message(message.exchange, key, header, message.body if body is None else body)

    return edit


def _parts(name: str, value: object) -> tuple[dict[str, Any], list[str]]:
    """Return the values that are set, and the names that are removed."""
    if value is None:
        return {}, []
    if not isinstance(value, Mapping):
        raise bad_request(f"{name}: must be an object")
    return (
        {key: each for key, each in value.items() if each is not None},
        [key for key, each in value.items() if each is None],
    )


def _require_allowed(call: Call, properties: Properties, routing_key: str | None, body: bytes | None) -> None:
    """Check an edit as a publish of this user is checked."""
    require_deliverable(routing_key or "", properties)
    user, principal = properties.user_id, call.principal
    if user not in (None, principal.name) and IMPERSONATOR not in principal.tags:
        raise PreconditionFailed(f"user_id property set to '{user}' but authenticated user was '{principal.name}'")
    limit = call.context.max_message_size
    if body is not None and len(body) > limit:
        raise PreconditionFailed(f"message size {len(body)} is larger than configured max size {limit}")
