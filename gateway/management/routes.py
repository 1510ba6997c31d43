"""Which function answers which method of which path: a table that each file of resources fills for its noun."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.management.authority import Level

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
class Gradual:
    """Work that takes long, done in small steps so that nobody waits for it; what it returns is the answer.

    Of the work that ``waits_its_turn`` there is one at a time; the next begins when it has ended.
    """

    steps: Generator[None, None, object]
    waits_its_turn: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, and the level that may use it."""

    method: str
    path: str
    level: Level
    resource: Resource


class Routes:
    """The routes of one URL noun. Paths are those of werkzeug, ``/queues/<vhost>``; every segment may be empty."""

    def __init__(self) -> None:
        self._routes: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def get(self, *paths: str, level: Level = Level.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Declare what answers GET, and so HEAD."""
        return self._declare("GET", paths, level)

    def put(self, *paths: str, level: Level = Level.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Declare what answers PUT."""
        return self._declare("PUT", paths, level)

    def post(self, *paths: str, level: Level = Level.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Declare what answers POST."""
        return self._declare("POST", paths, level)

    def delete(self, *paths: str, level: Level = Level.MANAGEMENT) -> Callable[[Resource], Resource]:
        """Declare what answers DELETE."""
        return self._declare("DELETE", paths, level)

    def _declare(self, method: str, paths: Iterable[str], level: Level) -> Callable[[Resource], Resource]:
        def declare(resource: Resource) -> Resource:
            self._routes += [Route(method, path, level, resource) for path in paths]
            return resource

        return declare


def put_reply(existed: bool) -> Reply:
    """Return the answer to a PUT: 204 where something was there already, 201 where it was made."""
    return Reply(204 if existed else 201)
