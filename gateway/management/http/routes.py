"""Which function answers which method of which path: a table that each file of resources fills for its noun."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from twisted.internet.defer import Deferred

from gateway.management.http.access_levels import AccessLevel

Resource: TypeAlias = Callable[..., object]
"""Takes a ``Call`` and the names in the path, percent-decoded, by keyword.

Returns JSON for 200, ``None`` for 204, a ``Listing``, or one of the replies below. Raises ``HttpError`` or what the
kernel raises.
"""

Fields: TypeAlias = dict[str, Any]  # JSON: whatever a view put there


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is not simply 200 or 204. ``fields`` is its JSON body, ``None`` for none."""

    status: int
    fields: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LongTask:
    """Work that takes long, done in small steps so that nobody waits for it; what it returns is the answer.

    Of the work that ``is_exclusive`` there is one at a time; the next begins when it has ended.
    """

    steps: "Generator[Deferred[None] | None, None, object]"
    is_exclusive: bool = False


Pieces: TypeAlias = Generator[bytes | None, None, None]
"""JSON that is made while it is sent. A piece that is empty ends a step of the work and nothing else."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer of any length, made no faster than the client takes it."""

    pieces: Pieces


#: Bytes in the body of a request, where a route does not say otherwise: a name, a table of arguments, a policy.
DEFAULT_BODY: Final = 256 * 1024

#: A list of many names.
LIST_BODY: Final = 2**20

#: A body that only the listener's own limit bounds.
ANY_BODY: Final = 2**62


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path, and the level that may use it.

    ``largest_body`` is what it takes, in bytes. ``takes_form`` says that the body may be a form's.
    """

    method: str
    path: str
    level: AccessLevel
    resource: Resource
    largest_body: int = DEFAULT_BODY
    takes_form: bool = False


class Routes:
    """The routes of one URL noun. Paths are those of werkzeug, ``/queues/<vhost>``; every segment may be empty."""

    def __init__(self) -> None:
        self._routes: list[Endpoint] = []

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._routes)

    def get(self, *paths: str, level: AccessLevel = AccessLevel.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Declare what answers GET, and so HEAD."""
        return self._declare("GET", paths, level)

    def put(self, *paths: str, level: AccessLevel = AccessLevel.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Declare what answers PUT."""
        return self._declare("PUT", paths, level)

    def post(
        self,
        *paths: str,
        level: AccessLevel = AccessLevel.MANAGEMENT,
        largest_body: int = DEFAULT_BODY,
        takes_form: bool = False,
    ) -> Callable[[Resource], Resource]:
        """Declare what answers POST."""
        return self._declare("POST", paths, level, largest_body, takes_form)

    def delete(self, *paths: str, level: AccessLevel = AccessLevel.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Declare what answers DELETE."""
        return self._declare("DELETE", paths, level)

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
    """Return the answer to a PUT: 204 where something was there already, 201 where it was made."""
    return Reply(204 if existed else 201)
