"""Listings: filtered, sorted, paged and reduced to columns, in small steps.

A listing may have many thousands of entries. It is encoded while it is sent, so that only a piece of it is in memory.
If names suffice for filtering and sorting, only the entries of one page are converted to views.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import chain, islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.name_filter import NameFilter, name_filter
from gateway.management.http.ordering import EntryOrder
from gateway.management.http.routes import Fields, Pieces, Streamed
from gateway.management.views.json import encode

T = TypeVar("T")

Items: TypeAlias = Generator[bytes | None, None, int]
"""Encoded entries of a page, with commas; returns their number."""

DEFAULT_PAGE_SIZE: Final = 100
MAX_PAGE_SIZE: Final = 500

#: The last entry of a page up to which only the entries before it are kept while the others are looked at. Each run of
#: entries is sorted together with those.
MOST_SELECTED: Final = 500

#: Entries filtered or viewed in one step, between checks of the time.
_BATCH_SIZE: Final = 20

#: Names matched in one step: the most expensive pattern takes milliseconds for each.
_FILTER_BATCH_SIZE: Final = 2


class JoinedView:
    """An entry of a listing that another cell of the cluster has viewed."""

    __slots__ = ("fields",)

    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    @property
    def key(self) -> tuple[str, str]:
        """The virtual host and the name."""
        return str(self.fields.get("vhost", "")), str(self.fields.get("name", ""))


class Listing(Generic[T]):
    """Entries, their views, and their keys (virtual host, name) for sorting and filtering.

    ``is_visible`` excludes entries that the user may not see. ``sort_value`` returns, for a field, a function of the
    field's value that takes less time than the view; ``None`` for other fields.
    ``None`` among the entries is no entry, see ``sort_in_steps``.
    """

    def __init__(
        self,
        entries: Iterable[T | None],
        view: Callable[[T], Fields],
        key: Callable[[T], tuple[str, str]],
        *,
        is_paged: bool = True,
        is_visible: Callable[[T], bool] | None = None,
        sort_value: Callable[[str], Callable[[T], Any] | None] = lambda field: None,
    ) -> None:
        self._entries = entries
        self._view = view
        self._key = key
        self._is_paged = is_paged
        self._is_visible = is_visible
        self._sort_value = sort_value

    def joined(self, views: Iterable[Fields]) -> "Listing[T | JoinedView]":
        """Return the listing with further entries, which are viewed already, and which the user may see."""
        is_visible, sort_value = self._is_visible, self._sort_value

        def sorted_by(field: str) -> Callable[[T | JoinedView], Any] | None:
            value = sort_value(field)
            if value is None:
                return None
            return lambda each: _at(each.fields, field) if isinstance(each, JoinedView) else value(each)

        def view(each: "T | JoinedView") -> Fields:
            return each.fields if isinstance(each, JoinedView) else self._view(each)

        def key(each: "T | JoinedView") -> tuple[str, str]:
            return each.key if isinstance(each, JoinedView) else self._key(each)

        def visible(each: "T | JoinedView") -> bool:
            return isinstance(each, JoinedView) or is_visible is None or is_visible(each)

        entries = chain(self._entries, map(JoinedView, views))
        return Listing(entries, view, key, is_paged=self._is_paged, is_visible=visible, sort_value=sorted_by)

    def pieces(self, query: Mapping[str, str]) -> Pieces:
        """Yield the listing for a query in pieces.

        :raises HttpError: if the query is invalid.
        """
        page = Page.of(query) if self._is_paged else None
        order = self._order(query, is_page=page is not None)
        entries = yield from self._visible()
        if page is None:
            yield b"["
            yield from self._written((yield from order.sorted(entries)), query)
            yield b"]"
            return
        total = len(entries)
        entries = yield from self._named(page, entries)
        count = len(entries)
        last = page.first_of(count) + page.size
        entries = yield from (order.sorted(entries) if last > MOST_SELECTED else order.first(entries, last))
        yield from page.written(self._written(page.cut(entries), query), total, count)

    def _order(self, query: Mapping[str, str], *, is_page: bool) -> EntryOrder[T]:
        """Return the order that ``sort`` names; entries of equal rank are in the order of their keys."""
        sort, key = query.get("sort", ""), self._key
        is_reversed = query.get("sort_reverse") == "true"
        if not sort:
            return EntryOrder(key, is_reversed=is_reversed)
        if sort == "name" and is_page:
            return EntryOrder(lambda entry: key(entry)[::-1], is_reversed=is_reversed)
        value = self._value(sort)
        return EntryOrder(lambda entry: (_rank(value(entry)), key(entry)), is_reversed=is_reversed)

    def _value(self, field: str) -> Callable[[T], Any]:
        """Return the function of the value in a field."""
        return self._sort_value(field) or (lambda entry: _at(self._view(entry), field))

    def _visible(self) -> Generator[None, None, list[T]]:
        visible = []
        for number, entry in enumerate(self._entries):
            if entry is not None and (self._is_visible is None or self._is_visible(entry)):
                visible.append(entry)
            if number % _BATCH_SIZE == 0:
                yield
        return visible

    def _named(self, page: "Page", entries: list[T]) -> Generator[None, None, list[T]]:
        if page.matches is None:
            return entries
        named = []
        for number, entry in enumerate(entries):
            if page.matches(self._key(entry)[1]):
                named.append(entry)
            if number % _FILTER_BATCH_SIZE == 0:
                yield
        return named

    def _written(self, entries: list[T], query: Mapping[str, str]) -> Items:
        comma = b""
        for start in range(0, len(entries), _BATCH_SIZE):
            some = [encode(with_columns(self._view(entry), query)) for entry in entries[start : start + _BATCH_SIZE]]
            yield comma + b",".join(some)
            comma = b","
        return len(entries)


class Page:
    """A page of a listing, limited to names that ``matches`` accepts (``None`` for all)."""

    def __init__(self, number: int, size: int, matches: NameFilter | None) -> None:
        self.number = number
        self.size = size
        self.matches = matches

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Page | None":
        """Parse a query; ``None`` without ``page``. :raises HttpError: if it is invalid."""
        if "page" not in query:
            return None
        try:
            number, size = int(query["page"]), int(query.get("page_size", DEFAULT_PAGE_SIZE))
        except ValueError:
            raise bad_request("Pagination parameters are invalid") from None
        if number < 1 or not 1 <= size <= MAX_PAGE_SIZE:
            reason = f"Invalid pagination parameters: page number {number}, page size {size}"
            raise HttpError(400, "invalid_pagination_parameters", reason)
        return cls(number, size, name_filter(query))

    def cut(self, entries: list[T]) -> list[T]:
        """Return the entries of this page. :raises HttpError: if it is beyond the last one."""
        start = self.first_of(len(entries))
        return entries[start : start + self.size]

    def first_of(self, count: int) -> int:
        """Return the index of the page's first entry. :raises HttpError: if the page is beyond the last one."""
        start = (self.number - 1) * self.size
        if start >= count and self.number > 1:
            reason = f"Page out of range, page: {self.number} page size: {self.size}, len: {count}"
            raise HttpError(400, "page_out_of_range", reason)
        return start

    def written(self, items: Items, total: int, filtered: int) -> Pieces:
        """Yield the page in pieces; ``items`` are its entries."""
        yield b'{"items":['
        count = yield from items
        rest = self.envelope([], total, filtered) | {"item_count": count}
        del rest["items"]
        yield b"]," + encode(rest)[1:]

    def envelope(self, items: list[Fields], total: int, filtered: int) -> Fields:
        """Return the page with its counts."""
        return {
            "filtered_count": filtered,
            "item_count": len(items),
            "items": items,
            "page": self.number,
            "page_count": -(-filtered // self.size),
            "page_size": self.size,
            "total_count": total,
        }


def with_columns(view: Fields, query: Mapping[str, str]) -> Fields:
    """Return the fields in ``columns``, such as ``name,message_stats.publish``; without it, all."""
    columns = query.get("columns", "")
    if not columns:
        return view
    chosen: Fields = {}
    for column in columns.split(","):
        value = _at(view, column)
        if value is not None or column in view:
            target = chosen
            *parents, last = column.split(".")
            for parent in parents:
                target = target.setdefault(parent, {})
            target[last] = value
    return chosen


def stream_list(entries: Iterable[T], view: Callable[[T], Fields]) -> Streamed:
    """Return a list of entries in their order, encoded in small steps."""

    def pieces() -> Pieces:
        source, comma = iter(entries), b"["
        while some := list(islice(source, _BATCH_SIZE)):
            yield comma + b",".join(encode(view(entry)) for entry in some)
            comma = b","
        yield b"]" if comma == b"," else b"[]"

    return Streamed(pieces())


def with_columns_in_steps(
    steps: Generator[None, None, Fields], query: Mapping[str, str]
) -> Generator[None, None, Fields]:
    """Return the fields in ``columns`` of a view that is made in steps."""
    view = yield from steps
    return with_columns(view, query)


def _at(view: Fields, path: str) -> Any:
    """Return the value at a dotted path, or ``None``."""
    value: Any = view
    for part in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _rank(value: Any) -> tuple[int, Any]:
    """Return a sort key for a value of any type: ``None`` before numbers before text."""
    if value is None:
        return 0, 0
    if isinstance(value, bool | int | float):
        return 1, value
    return 2, str(value)
