"""Reads of streams over the HTTP API of one node, and what the cluster says of them."""

import json
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from ssl import SSLContext
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from gateway.archive.schemas import worker_module
from tests.clusters.gateway_cluster import ClusterNode
from tests.waiting import wait_until

_TIMEOUT_S: Final = 30.0

#: How long a request may take, a takeover included.
_ANSWERED_S: Final = 90.0

_UNAVAILABLE: Final = 503

#: How long a copy may take to have what was confirmed.
_COPIED_S: Final = 90.0

#: The columns of the rows that tests compare.
Row = tuple[int, bytes]


class Reply(NamedTuple):
    """An answer. ``read_at`` is the node whose copy has answered; empty if the leader has."""

    status: int
    read_at: str
    content: bytes
    next: int = 0

    @property
    def rows(self) -> list[Row]:
        """The offsets and bodies of the messages."""
        table = pa.ipc.open_stream(self.content).read_all()
        return list(zip(table["offset"].to_pylist(), table["body"].to_pylist(), strict=True))

    @property
    def fields(self) -> Any:  # Any: JSON
        """The JSON of the answer."""
        return json.loads(self.content)


class NodeReads:
    """One connection to the HTTP API of a node, which stays open; with ``tls`` to its port with TLS."""

    def __init__(
        self,
        node: ClusterNode,
        user: str = "guest",
        password: str = "guest",
        *,
        vhost: str = "/",
        tls: SSLContext | None = None,
    ) -> None:
        self._vhost = quote(vhost, safe="")
        self._connection = (
            HTTPConnection(*node.addresses["management"], timeout=_TIMEOUT_S)
            if tls is None
            else HTTPSConnection(*node.addresses["management_tls"], timeout=_TIMEOUT_S, context=tls)
        )
        credentials = b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {credentials}"}

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """Send a request until a leader or a copy has answered it, as clients do; return the answer."""
        content = None if body is None else json.dumps(body).encode()
        sent = self._headers | ({} if body is None else {"Content-Type": "application/json"}) | (headers or {})
        last = ""

        def answer() -> Reply | None:
            nonlocal last
            try:
                self._connection.request(method, f"/api/{path}", content, sent)
                reply = _reply(self._connection.getresponse())
            except (OSError, HTTPException) as error:
                self._connection.close()
                last = str(error)
                return None
            last = str(reply)
            return None if reply.status == _UNAVAILABLE else reply

        found = wait_until(answer, lambda: f"no answer to {path}: {last}", timeout_s=_ANSWERED_S)
        assert found is not None
        return found

    def read(self, stream: str, begin: int, end: int) -> Reply:
        """Read a part of a stream."""
        return self.ask("GET", f"pipeline/{self._vhost}/read?queue={stream}&from={begin}&to={end}")

    def read_all(self, stream: str, end: int, begin: int = 0) -> tuple[list[Row], set[str]]:
        """Return the messages from an offset up to another, and the nodes whose copies have answered."""
        rows: list[Row] = []
        nodes = set()
        while begin < end:
            reply = self.read(stream, begin, end)
            assert reply.status == 200, reply
            rows += [row for row in reply.rows if begin <= row[0] < end]
            nodes.add(reply.read_at)
            begin = reply.next
        return rows, nodes

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _reply(response: HTTPResponse) -> Reply:
    headers = response.headers
    return Reply(response.status, headers.get("X-Read-At", ""), response.read(), int(headers.get("X-Next-Offset", 0)))


def wait_until_copied(node: ClusterNode, stream: str, end: int, vhost: str = "/") -> None:
    """Wait until the copy of a node has a stream up to an offset."""

    def is_copied() -> bool:
        link = NodeReads(node, vhost=vhost)
        reply = link.read(stream, end - 1, end)
        link.close()
        return reply.status == 200 and reply.read_at == node.name

    wait_until(is_copied, lambda: f"{node.name} has no copy\n{node.log}", timeout_s=_COPIED_S)


def answered_reads(node: ClusterNode) -> dict[str, int]:
    """Return how many reads each node has answered from its copies, as the cluster shows it."""
    link = NodeReads(node)
    members = link.ask("GET", "cluster").fields["members"]
    link.close()
    return {member["name"]: member["copy_reads"]["messages"] for member in members}


def encoding_ticks(node: ClusterNode) -> int:
    """Return the processor time of the process in which a node encodes messages, in ticks; 0 without one."""
    return sum(_ticks(path) for path in _children(node.child.pid) if worker_module() in (path / "cmdline").read_text())


def _children(pid: int) -> Iterator[Path]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        yield from (Path(f"/proc/{child}") for child in (task / "children").read_text().split())


def _ticks(path: Path) -> int:
    fields = (path / "stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])
