"""/audit: the changes that operators made. RabbitMQ has no such resource."""

from collections.abc import Callable, Generator
from datetime import datetime
from itertools import islice
from typing import Any, Final, TypeAlias

from twisted.internet.defer import Deferred

from gateway.definitions import scan
from gateway.kernel.journal.records.audit import AuditRecord
from gateway.management.cells.asking import asked, awaited, question_by, target_of
from gateway.management.cells.cells import Cells
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import digits
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.listing import MAX_PAGE_SIZE, Items, Page
from gateway.management.http.routes import Fields, LongTask, Pieces, Routes, Streamed
from gateway.management.views.json import encode
from gateway.management.views.times import timestamp

routes = Routes()

Test: TypeAlias = Callable[[AuditRecord], bool]

#: Filters of the query that compare a text; one that ends in ``*`` compares the beginning.
_TEXTS: Final = ("user", "address", "surface", "action", "vhost", "subject")

#: Entries that are compared in one step.
_STEP: Final = 32


@routes.get("/audit", level=AccessLevel.ADMINISTRATOR)
def audit(call: Call) -> Streamed | LongTask:
    """List the entries of the audit record, the newest first; of all cells, if a cluster has several."""
    page, cells = Page.of({"page": "1", **call.query}), call.context.cells
    assert page is not None
    if cells is not None and cells.is_first and "cell" not in call.query:
        return LongTask(_joined(call, cells, page))
    return Streamed(_listing(call, page, _tests(call)))


@routes.get("/audit/<number>", level=AccessLevel.ADMINISTRATOR)
def entry(call: Call, number: str) -> LongTask:
    """Return one entry of the audit record."""
    return LongTask(_one(call, digits(number)))


def audit_view(entry: AuditRecord) -> Fields:
    """Return the view of an entry."""
    return {
        "number": entry.number,
        "at": timestamp(entry.at_ms),
        "at_ms": entry.at_ms,
        "user": entry.user,
        "address": entry.address,
        "surface": entry.surface,
        "action": entry.action,
        "vhost": entry.vhost,
        "subject": entry.subject,
        "before": entry.before,
        "after": entry.after,
        "details": entry.details,
        "previous": entry.previous,
        "digest": entry.digest,
    }


def _joined(call: Call, cells: Cells, page: Page) -> "Generator[Deferred[None] | None, None, Fields]":
    """Return a page of the entries of all cells. :raises HttpError: if it is far back, or a cell does not answer."""
    most = page.number * page.size
    if most > MAX_PAGE_SIZE:
        last = f"the last {MAX_PAGE_SIZE} entries of all cells are listed in one order"
        raise bad_request(f"{last}; for earlier ones name a cell, such as cell=1")
    filters = {name: text for name, text in call.query.items() if name in (*_TEXTS, "since", "until")}
    target = target_of("/api/audit", {**filters, "page": "1", "page_size": str(most)})
    answers = {cell: asked(cells, cell, question_by(call, "GET", target)) for cell in cells.others}
    shown, count, total = yield from _chosen(call, 0, most, _tests(call))
    entries = [{**audit_view(entry), "cell": cells.own} for entry in shown]
    for cell, answer in answers.items():
        _, body = yield from awaited(answer)
        found: Any = yield from scan(body.decode())  # Any: JSON
        entries += [{**each, "cell": cell} for each in found["items"]]
        count += found["filtered_count"]
        total += found["total_count"]
    entries.sort(key=lambda each: -each["at_ms"])
    return page.envelope(entries[page.first_of(count) :][: page.size], total, count)


def _listing(call: Call, page: Page, tests: list[Test]) -> Pieces:
    steps = _chosen(call, (page.number - 1) * page.size, page.size, tests)
    shown, count, total = yield from steps
    page.first_of(count)
    yield from page.written(_written(shown), total, count)


def _chosen(
    call: Call, first: int, size: int, tests: list[Test]
) -> Generator[None, None, tuple[list[AuditRecord], int, int]]:
    """Return a part of the entries that pass the tests, their number, and that of all entries."""
    entries, count = call.broker.audit.newest_first(), 0
    shown: list[AuditRecord] = []
    while step := list(islice(entries, _STEP)):
        chosen = [entry for entry in step if all(test(entry) for test in tests)]
        shown += chosen[max(0, first - count) : max(0, first + size - count)]
        count += len(chosen)
        yield
    return shown, count, len(call.broker.audit)


def _written(entries: list[AuditRecord]) -> Items:
    for number, entry in enumerate(entries):
        yield (b"," if number else b"") + encode(audit_view(entry))
    return len(entries)


def _one(call: Call, number: int | None) -> Generator[None, None, Fields]:
    entries = call.broker.audit.newest_first()
    while step := list(islice(entries, _STEP)):
        for entry in step:
            if entry.number == number:
                return audit_view(entry)
        yield
    raise HttpError(404, "not_found", f"the audit record has no entry {number}")


def _tests(call: Call) -> list[Test]:
    """Return the filters of the query. :raises HttpError: if a time is invalid."""
    tests = [_text_test(name, call.query[name]) for name in _TEXTS if call.query.get(name)]
    if since := call.query.get("since"):
        since_ms = _time_ms("since", since)
        tests.append(lambda entry: entry.at_ms >= since_ms)
    if until := call.query.get("until"):
        until_ms = _time_ms("until", until)
        tests.append(lambda entry: entry.at_ms <= until_ms)
    return tests


def _text_test(name: str, wanted: str) -> Test:
    if wanted.endswith("*"):
        return lambda entry: str(getattr(entry, name)).startswith(wanted[:-1])
    return lambda entry: bool(getattr(entry, name) == wanted)


def _time_ms(name: str, value: str) -> int:
    """Return a wall time: milliseconds since the epoch, or an ISO 8601 time, in UTC without an offset."""
    if (number := digits(value)) is not None:
        return number
    try:
        time = datetime.fromisoformat(value)
        return int((time if time.tzinfo else datetime.fromisoformat(f"{time.isoformat()}+00:00")).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise bad_request(
            f"{name}: '{value[:100]}' is neither milliseconds nor a time such as 2026-11-24T08:00:00Z"
        ) from None
