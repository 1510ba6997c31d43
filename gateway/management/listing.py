"""Lists as the API gives them out: filtered, sorted, cut into pages and columns, and made in small steps.

A list may have many thousands of entries. Where order and filter need names alone, only those of one page are viewed.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from gateway.management.errors import HttpError, bad_request
from gateway.management.name_filter import NameFilter, name_filter
from gateway.management.routes import Fields
from gateway.management.views.json import Encoded, encode

T = TypeVar("T")

DEFAULT_PAGE_SIZE: Final = 100
LARGEST_PAGE: Final = 500

#: Entries filtered or viewed between two looks at the clock.
_STRIDE: Final = 20


class Listing(Generic[T]):
    """Entries to list, how each is viewed, and its (virtual host, name), by which they are ordered and filtered."""

    def __init__(
        self,
        entries: Iterable[T],
        view: Callable[[T], Fields],
        key: Callable[[T], tuple[str, str]],
        *,
        is_paged: bool = True,
    ) -> None:
        self._entries = entries
        self._view = view
        self._key = key
        self._is_paged = is_paged

    def collect(self, query: Mapping[str, str]) -> Generator[None, None, object]:
        """Make the list that a query asks for, one step each time this is asked on; return it.

        :raises HttpError: when the query makes no sense.
        """
        page = Page.of(query) if self._is_paged else None
        entries = sorted(self._entries, key=self._key)
        total = len(entries)
        yield
        if page is not None:
            entries = yield from self._wanted(page, entries)
        count, sort = len(entries), query.get("sort", "")
        if page is not None and sort in ("", "name"):
            self._sort_by_name(entries, sort, query.get("sort_reverse") == "true")
            entries = page.cut(entries)
            views = yield from self._views(entries)
        else:
            views = yield from self._views(entries)
            if sort:
                views.sort(key=lambda view: _rank(_at(view, sort)))
            if query.get("sort_reverse") == "true":
                views.reverse()
            views = views if page is None else page.cut(views)
        if page is None:
            return (yield from _encoded(views, query))
        return page.envelope([with_columns(view, query) for view in views], total, count)

    def _wanted(self, page: "Page", entries: list[T]) -> Generator[None, None, list[T]]:
        if page.admits is None:
            return entries
        wanted = []
        for number, entry in enumerate(entries):
            if page.admits(self._key(entry)[1]):
                wanted.append(entry)
            if number % _STRIDE == 0:
                yield
        return wanted

    def _sort_by_name(self, entries: list[T], sort: str, is_reversed: bool) -> None:
        if sort:
            entries.sort(key=lambda entry: self._key(entry)[1])
        if is_reversed:
            entries.reverse()

    def _views(self, entries: list[T]) -> Generator[None, None, list[Fields]]:
        views = []
        for number, entry in enumerate(entries):
            views.append(self._view(entry))
            if number % _STRIDE == 0:
                yield
        return views


class Page:
    """Which part of a list is wanted, and of which names: those that it ``admits``, all without."""

    def __init__(self, number: int, size: int, admits: NameFilter | None) -> None:
        self.number = number
        self.size = size
        self.admits = admits

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Page | None":
        """Read a query; without ``page`` everything is wanted. :raises HttpError: when it makes no sense."""
        if "page" not in query:
            return None
        try:
            number, size = int(query["page"]), int(query.get("page_size", DEFAULT_PAGE_SIZE))
        except ValueError:
            raise bad_request("Pagination parameters are invalid") from None
        if number < 1 or not 1 <= size <= LARGEST_PAGE:
            reason = f"Invalid pagination parameters: page number {number}, page size {size}"
            raise HttpError(400, "invalid_pagination_parameters", reason)
        return cls(number, size, name_filter(query))

    def cut(self, entries: list[T]) -> list[T]:
        """Return the entries of this page. :raises HttpError: when it is behind the last one."""
        start = self.first_of(len(entries))
        return entries[start : start + self.size]

    def first_of(self, count: int) -> int:
        """Return the number of the page's first entry, from 0. :raises HttpError: when it is behind the last one."""
        start = (self.number - 1) * self.size
        if start >= count and self.number > 1:
            reason = f"Page out of range, page: {self.number} page size: {self.size}, len: {count}"
            raise HttpError(400, "page_out_of_range", reason)
        return start

    def envelope(self, items: list[Fields], total: int, filtered: int) -> Fields:
        """Return the page as it is sent."""
        return {
            "filtered_count": filtered,
            "item_count": len(items),
            "items": items,
            "page": self.number,
            "page_count": -(-filtered // self.size),
            "page_size": self.size,
            "total_count": total,
        }


def _encoded(views: list[Fields], query: Mapping[str, str]) -> Generator[None, None, Encoded]:
    """Write out a list that may be long: megabytes at once would keep everybody else waiting."""
    pieces = []
    for number, view in enumerate(views):
        pieces.append(encode(with_columns(view, query)))
        if number % _STRIDE == 0:
            yield
    return Encoded(b"[" + b",".join(pieces) + b"]")


def with_columns(view: Fields, query: Mapping[str, str]) -> Fields:
    """Return the fields that ``columns`` names, such as ``name,message_stats.publish``; all without it."""
    columns = query.get("columns", "")
    if not columns:
        return view
    chosen: Fields = {}
    for column in columns.split(","):
        value = _at(view, column)
        if value is not None or column in view:
            place = chosen
            *parents, last = column.split(".")
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = value
    return chosen


def in_columns(steps: Generator[None, None, Fields], query: Mapping[str, str]) -> Generator[None, None, Fields]:
    """Return the fields that ``columns`` names of what is made step by step."""
    view = yield from steps
    return with_columns(view, query)


def _at(view: Fields, path: str) -> Any:
    """Return what stands under a dotted path, ``None`` where nothing does."""
    value: Any = view
    for part in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _rank(value: Any) -> tuple[int, Any]:
    """Make values of any type comparable: nothing before numbers before text."""
    if value is None:
        return 0, 0
    if isinstance(value, bool | int | float):
        return 1, value
    return 2, str(value)
