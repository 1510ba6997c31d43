"""/openapi.json: the OpenAPI document of all routes."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.downloads import Download
from gateway.management.http.routes import Endpoint
from gateway.management.openapi.document import document
from gateway.management.views.json import encode

_HEADERS: Final = {"Content-Type": "application/json"}


def with_document(routes: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """Return the routes and one more, which returns the document of all of them."""

    @cache
    def content() -> bytes:
        return encode(document(all_routes))

    def openapi(call: Call) -> Download:
        """Return the OpenAPI document of the API."""
        return Download.of_bytes(content(), _HEADERS)

    all_routes = (*routes, Endpoint("GET", "/openapi.json", AccessLevel.MANAGEMENT, openapi))
    return all_routes
