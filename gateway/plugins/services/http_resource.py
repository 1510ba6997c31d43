"""HTTP resources of plugins, their requests and their replies."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from gateway.access import Operation, Permissions, Principal
from gateway.kernel.errors import PreconditionFailed

#: The longest path of a resource, in segments.
MOST_SEGMENTS: Final = 5

#: The largest body that a resource may accept, in bytes.
MOST_BODY: Final = 16 * 2**20

#: The longest time that a resource may wait for its answer, in seconds.
MOST_TIME_S: Final = 300.0

HttpMethod: TypeAlias = Literal["GET", "PUT", "POST", "DELETE"]
UserTag: TypeAlias = Literal["management", "policymaker", "monitoring", "administrator"]

METHODS: Final[tuple[str, ...]] = get_args(HttpMethod)
TAGS: Final[tuple[str, ...]] = get_args(UserTag)

_LITERAL: Final = re.compile(r"[A-Za-z0-9._~-]{1,64}")
_VARIABLE: Final = re.compile(r"\{([a-z_][a-z0-9_]{0,63})\}")


@dataclass(frozen=True, slots=True)
class RequiredPermission:
    """A permission that a resource requires, on an exchange or a queue of its virtual host.

    ``name`` is its name, or a variable of the path, such as ``{queue}``. ``kind`` is ``exchange`` or ``queue``.
    """

    operation: Operation
    kind: str
    name: str

    def require(self, permissions: Permissions, names: Mapping[str, str]) -> None:
        """Require the permission. :raises AccessRefused: if it is missing."""
        variable = _VARIABLE.fullmatch(self.name)
        permissions.require(self.operation, self.kind, names[variable[1]] if variable is not None else self.name)


class HttpRequest:
    """A request to a resource of a plugin.

    ``names`` are the variables of the path, ``query`` the part of the URL after the question mark. ``permissions`` are
    those of the ``user`` in the virtual host of the resource.
    """

    __slots__ = ("body", "method", "names", "peer_host", "permissions", "query", "user")

    def __init__(
        self,
        method: str,
        names: Mapping[str, str],
        query: Mapping[str, str],
        body: bytes,
        user: Principal,
        permissions: Permissions,
        peer_host: str = "",
    ) -> None:
        self.method = method
        self.names = names
        self.query = query
        self.body = body
        self.user = user
        self.permissions = permissions
        self.peer_host = peer_host

    @property
    def fields(self) -> dict[str, Any]:  # Any: JSON values
        """The body as a JSON object; an empty body is an empty object. :raises PreconditionFailed: if it is not one."""
        try:
            found = json.loads(self.body) if self.body.strip() else {}
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise PreconditionFailed("the body is not a JSON object")
        return found


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer with a status, a content and headers. ``content`` is text, bytes, or a value that is sent as JSON."""

    status: int = 200
    content: object = None
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpResource:
    """A resource of the management API, at ``/api/plugins/VHOST/PLUGIN/resources/PATH``.

    ``path`` has up to five segments; ``{name}`` is a variable. The first resource that matches a path is used.
    ``answer`` is called for each request of a user who has ``tag`` and the ``permission``, and may enter the virtual
    host. It is called on the kernel's thread, must not block, and returns one of:

    * a JSON value, or an ``HttpReply`` for another status or content. A list is sent row by row;
    * ``None``, for an answer without content (204);
    * an iterator of rows, which is sent as a JSON list, as fast as the client reads. A row ``None`` is not sent: it
      ends a step, so that rows that take long to find delay no client;
    * a Deferred of Twisted for any of these, if it has to wait. After ``time_limit_s`` seconds the answer is 503.

    It may raise ``NotFound`` (404), ``AccessRefused`` (401) and the other errors of ``gateway.api`` (400). Any other
    exception is a fault of the plugin, and the answer is 500. ``largest_body`` is in bytes.
    """

    path: str
    answer: Callable[[HttpRequest], object]
    method: HttpMethod = "GET"
    tag: UserTag = "management"
    permission: RequiredPermission | None = None
    largest_body: int = 64 * 1024
    time_limit_s: float = 30.0
    description: str = ""

    @property
    def segments(self) -> list[str]:
        """The segments of the path."""
        return self.path.split("/")

    @property
    def variables(self) -> list[str]:
        """The names of the variables in the path."""
        return [found[1] for segment in self.segments if (found := _VARIABLE.fullmatch(segment)) is not None]

    def names_in(self, segments: list[str]) -> dict[str, str] | None:
        """Return the variables of a path that matches; ``None`` if it does not."""
        if len(segments) != len(self.segments):
            return None
        names = {}
        for pattern, segment in zip(self.segments, segments, strict=True):
            if (variable := _VARIABLE.fullmatch(pattern)) is not None:
                names[variable[1]] = segment
            elif pattern != segment:
                return None
        return names


def problem_of_resource(resource: HttpResource) -> str | None:
    """Return the fault in a resource that a plugin offers, or ``None``."""
    where = f"the resource {resource.method} {resource.path!r}"
    problems = {
        f"{where} has a method that is not one of {', '.join(METHODS)}": resource.method not in METHODS,
        f"{where} requires a tag that is not one of {', '.join(TAGS)}": resource.tag not in TAGS,
        f"{where} has no function to answer": not callable(resource.answer),
        f"{where} accepts a body of {resource.largest_body} bytes, not 0 to {MOST_BODY}": not (
            0 <= resource.largest_body <= MOST_BODY
        ),
        f"{where} has a time limit of {resource.time_limit_s} s, not more than 0 and up to {MOST_TIME_S:g}": not (
            0 < resource.time_limit_s <= MOST_TIME_S
        ),
    }
    found = next((text for text, is_wrong in problems.items() if is_wrong), None)
    return found or _problem_of_path(resource, where)


def _problem_of_path(resource: HttpResource, where: str) -> str | None:
    segments, variables = resource.segments, resource.variables
    for segment in segments:
        if not _LITERAL.fullmatch(segment) and not _VARIABLE.fullmatch(segment):
            return f"{where}: the segment {segment!r} is neither letters, digits and ._~- nor a variable such as {{id}}"
    if len(segments) > MOST_SEGMENTS:
        return f"{where} has {len(segments)} segments; {MOST_SEGMENTS} are the most"
    if len(set(variables)) < len(variables):
        return f"{where} has a variable twice"
    permission = resource.permission
    if permission is not None:
        named = _VARIABLE.fullmatch(permission.name)
        if named is not None and named[1] not in variables:
            return f"{where} requires a permission on {permission.name}, which is no variable of its path"
    return None
