"""The first rows of a list that the API returns in pages."""

from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, number, objects, part

#: Largest page of the API.
_MAX_PAGE_SIZE = 500


def first_rows(session: VerbSession, path: tuple[str, ...], limit: int) -> list[JsonObject]:
    """Return up to ``limit`` rows, reading page by page."""
    found: list[JsonObject] = []
    size = min(limit, _MAX_PAGE_SIZE)
    page, pages = 1, 1
    while page <= pages and len(found) < limit:
        answer = session.api.get(*path, query={"page": str(page), "page_size": str(size)})
        found += objects(part(answer, "items"))
        page, pages = page + 1, number(answer, "page_count")
    return found[:limit]
