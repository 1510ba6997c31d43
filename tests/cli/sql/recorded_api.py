"""The management API of a running broker, which records what is requested."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.connecting.credentials import ApiCredentials
from gateway.sql.query import SqlQuery
from tests.running import Gateway


class RecordedApi:
    """The API as one user. ``sizes`` are those of answers that are not JSON, ``requested`` the paths and queries."""

    def __init__(self, gateway: Gateway, user: str = "guest") -> None:
        host, port = gateway.addresses["management"]
        self._api = ApiClient(ApiAddress("http", host, port, ""), ApiCredentials.of_password(user, user), 60)
        self.sizes: list[int] = []
        self.requested: list[tuple[tuple[str, ...], dict[str, str]]] = []

    def get(self, *path: str, query: Mapping[str, str] | None = None) -> Any:
        self.requested.append((path, dict(query or {})))
        return self._api.get(*path, query=query)

    def raw(self, *path: str, query: Mapping[str, str] | None = None) -> bytes:
        self.requested.append((path, dict(query or {})))
        answer = self._api.raw(*path, query=query)
        self.sizes.append(len(answer))
        return answer

    def count(self, last: str) -> int:
        """Return the number of requests whose path ends so."""
        return sum(path[-1] == last for path, _ in self.requested)


def select(
    api: RecordedApi, sql: str, *, vhost: str = "/", tags: Iterable[str] = ("administrator",)
) -> list[tuple[Any, ...]]:
    """Run a query and return its rows."""
    with SqlQuery(api, vhost, sql, "500MB", lambda: tags).run() as (_, rows):
        return list(rows)
