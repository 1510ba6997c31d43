"""Conversion of what a plugin's resource returns to a response."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.kernel.faults import BadAnswer, described, shown
from gateway.management.http.routes import Reply
from gateway.management.views.json import encode_known
from gateway.plugins.services.http_resource import HttpReply

_STATUSES: Final = range(200, 600)
_BODYLESS: Final = (204, 205, 304)
_HEADER: Final = re.compile(r"[A-Za-z0-9-]+")
_VALUE: Final = re.compile(r"[^\x00-\x1f\x7f]*")

#: Headers that the broker itself sends.
_OWN_HEADERS: Final = frozenset({"content-length", "content-type", "transfer-encoding", "connection"})


def reply_of(answer: object) -> Reply:
    """Return the response for an answer other than ``None`` and rows. :raises BadAnswer: if it is not valid."""
    reply = answer if isinstance(answer, HttpReply) else HttpReply(content=answer)
    if not isinstance(reply.status, int) or reply.status not in _STATUSES:
        raise BadAnswer(f"the resource answered with the status {shown(reply.status)}, not 200 to 599")
    headers = _checked(reply.headers)
    if reply.status in _BODYLESS or reply.content is None:
        return Reply(reply.status, headers=headers)
    content, content_type = _encoded(reply)
    return Reply(reply.status, headers=headers | _checked({"Content-Type": content_type}, frozenset()), content=content)


def _encoded(reply: HttpReply) -> tuple[bytes, str]:
    """Return the body of a reply and its content type."""
    content = reply.content
    if isinstance(content, bytes):
        return content, reply.content_type or "application/octet-stream"
    if isinstance(content, str) and reply.content_type:
        return content.encode(), reply.content_type
    return encoded_row(content), reply.content_type or "application/json"


def encoded_row(value: object) -> bytes:
    """Return a value as JSON. :raises BadAnswer: if it is not one."""
    try:
        return encode_known(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadAnswer(f"the resource returned {shown(value)}, which is not JSON: {described(error)}") from None


def _checked(headers: Mapping[str, str], own: frozenset[str] = _OWN_HEADERS) -> dict[str, str]:
    """Return headers. :raises BadAnswer: if one is malformed, or sent by the broker itself."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or not _VALUE.fullmatch(value) or name.lower() in own:
            raise BadAnswer(
                f"the resource answered with the header {shown(name)}: {shown(value)}, which is not allowed"
            )
    return dict(headers)
