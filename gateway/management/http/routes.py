"""Routes of the API: a table of methods, paths and functions, filled by the files in ``resources``."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from twisted.internet.defer import Deferred

from gateway.management.http.access_levels import AccessLevel

Resource: TypeAlias = Callable[..., object]
"""Takes a ``Call`` and the names in the path, percent-decoded, by keyword.

Returns JSON for 200, ``None`` for 204, a ``Listing``, or one of the replies below. Raises ``HttpError`` or the
kernel's errors.
"""

Fields: TypeAlias = dict[str, Any]  # a JSON object


@dataclass(frozen=True, slots=True)
class Reply:
    """A response with a status. ``fields`` is its JSON body, or ``None``; ``content`` is a body that is encoded."""

    status: int
    fields: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class LongTask:
    """Work done in small steps so that it does not delay other clients; its result is the response.

    Exclusive tasks run one after the other.
    """

    steps: "Generator[Deferred[None] | None, None, object]"
    is_exclusive: bool = False


Pieces: TypeAlias = Generator[bytes | Deferred[None] | None, None, None]
"""JSON that is generated while it is sent. An empty piece only ends a step.

A deferred sends what there is, and continues when it is called back.
"""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A response of any length, generated as fast as the client reads it. ``headers`` are further ones."""

    pieces: Pieces | Iterator[bytes]
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


#: Default maximum size of a request's body in bytes: a name, a table of arguments, a policy.
DEFAULT_BODY: Final = 256 * 1024

#: Maximum size of a body with a list of names.
LIST_BODY: Final = 2**20

#: No limit but that of the listener.
ANY_BODY: Final = 2**62


Refinement: TypeAlias = Callable[[Any, Mapping[str, str]], "Endpoint"]  # the first argument is an ApiContext


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path, with its access level.

    ``largest_body`` is the maximum size of the body in bytes. ``takes_form`` allows the body of a form. ``refine``
    returns the endpoint that depends on the names in the path, still percent-encoded; it is called after the login.
    """

    method: str
    path: str
    level: AccessLevel
    resource: Resource
    largest_body: int = DEFAULT_BODY
    takes_form: bool = False
    refine: Refinement | None = None


class Routes:
    """The routes of one kind of resource. Paths are those of werkzeug, ``/queues/<vhost>``; a segment may be empty."""

    def __init__(self) -> None:
        self._routes: list[Endpoint] = []

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._routes)

    def get(self, *paths: str, level: AccessLevel = AccessLevel.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Register a resource for GET and HEAD."""
        return self._declare("GET", paths, level)

    def put(self, *paths: str, level: AccessLevel = AccessLevel.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Register a resource for PUT."""
        return self._declare("PUT", paths, level)

    def post(
        self,
        *paths: str,
        level: AccessLevel = AccessLevel.MANAGEMENT,
        largest_body: int = DEFAULT_BODY,
        takes_form: bool = False,
    ) -> Callable[[Resource], Resource]:
        """Register a resource for POST."""
        return self._declare("POST", paths, level, largest_body, takes_form)

    def delete(self, *paths: str, level: AccessLevel = AccessLevel.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Register a resource for DELETE."""
        return self._declare("DELETE", paths, level)

    def add(self, endpoint: Endpoint) -> None:
        """Register an endpoint."""
        self._routes.append(endpoint)

    def _declare(
        self,
        method: str,
        paths: Iterable[str],
        level: AccessLevel,
        largest_body: int = DEFAULT_BODY,
        takes_form: bool = False,
    ) -> Callable[[Resource], Resource]:
        def declare(resource: Resource) -> Resource:
            self._routes += [Endpoint(method, path, level, resource, largest_body, takes_form) for path in paths]
            return resource

        return declare


def put_reply(existed: bool) -> Reply:
    """Return the response to a PUT: 204 if the entity existed, 201 if it was created."""
    return Reply(204 if existed else 201)
