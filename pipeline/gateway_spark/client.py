"""The client of the broker's management ports, with retries at any of its nodes.

It runs on the driver and on every executor, with only the standard library. All requests are idempotent: reading
changes nothing, staging a part twice is the same as once, and the broker detects a repeated batch.
"""

import json
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode

from gateway_spark.address import Address, NodeUrl, TlsOptions
from gateway_spark.errors import AccessError, BatchHeld, BrokerRefused, Unreachable
from gateway_spark.options import QueueSelection

#: Timeout for an answer, or for the next piece of one, in seconds.
TIMEOUT_S: Final = 60.0

#: Time that the broker may take to answer a commit, in seconds; then it answers with the state of the batch.
WAIT_S: Final = 10.0

#: Timeout for a connection including TLS, in seconds; a silent peer speaks another protocol.
CONNECT_TIMEOUT_S: Final = 10.0

NOT_FOUND: Final = 404

#: Pauses between attempts, in seconds.
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 3.0

Fields: TypeAlias = dict[str, Any]  # decoded JSON


@dataclass(frozen=True, slots=True)
class Partition:
    """One stream: its name (each partition of a super stream has one), its first offset, its next offset, its size.

    ``incarnation`` changes when the stream is deleted and declared again; ``None`` if the broker names none.
    ``broker`` is the name of its broker, if there are several.
    """

    queue: str
    first: int
    next: int
    size_bytes: int
    incarnation: str | None = None
    broker: str = ""


@dataclass(frozen=True, slots=True)
class Slice:
    """An Arrow IPC stream with the messages from ``first`` to before ``next``, without gaps."""

    first: int
    next: int
    content: bytes


class Client:
    """One connection to a node of the broker, opened on demand. Not thread-safe.

    After an error it is opened anew, to the next node if there are several.
    """

    def __init__(
        self,
        address: Address,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self._address = address
        self._connect_timeout_s = connect_timeout_s
        self._pause = pause
        self._clock = clock
        self._connection: HTTPConnection | None = None
        self._number = 0  # of the node
        credentials = b64encode(f"{address.username}:{address.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {credentials}"}
        self._root = f"/api/pipeline/{quote(address.vhost, safe='')}"

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Reading

    def streams(self, selection: QueueSelection) -> dict[str, dict[str, Partition]]:
        """Return the queues of a selection: queue to partition number to the bounds of that stream.

        :raises BrokerRefused: if a named queue does not exist or is not a stream.
        """
        query = {"names": json.dumps(selection.names)} if selection.pattern is None else {}
        found = {
            queue["queue"]: {
                number: Partition(each["queue"], each["first"], each["next"], each["bytes"], each.get("incarnation"))
                for number, each in queue["partitions"].items()
            }
            for queue in self._json("GET", "/streams", query)["queues"]
        }
        return found if selection.pattern is None else _matching(selection.pattern, found)

    def offset_at(self, stream: str, time_ms: int) -> int:
        """Return the offset of the first message at or after a time; if there is none yet, the next offset."""
        answer = self._json("GET", "/offset", {"queue": stream, "timestamp": str(time_ms)})
        return int(answer["offset"])

    def offset_after(self, stream: str, offset: int, size_bytes: int) -> int:
        """Return the offset about this many bytes after another."""
        query = {"queue": stream, "offset": str(offset), "bytes": str(size_bytes)}
        return int(self._json("GET", "/offset", query)["offset"])

    def read(self, stream: str, begin: int, end: int, incarnation: str | None = None) -> Slice:
        """Read from ``begin`` up to ``end``, or less if the broker limits the answer; earlier messages may precede.

        :raises BrokerRefused: with status 410, and the field ``first`` if ``begin`` is truncated, or the error
            ``recreated`` if the stream has another incarnation.
        """
        query = {"queue": stream, "from": str(begin), "to": str(end)}
        if incarnation is not None:
            query["incarnation"] = incarnation
        response, content = self._answer("GET", "/read", query)
        return Slice(int(response.headers["X-First-Offset"]), int(response.headers["X-Next-Offset"]), content)

    def report(self, consumer: str, progress: Fields) -> None:
        """Report a query's progress, so that the broker can show its lag."""
        self._json("PUT", f"/progress/{quote(consumer, safe='')}", {}, json.dumps(progress).encode())

    # Writing

    def stage(self, place: Mapping[str, str], rows: bytes) -> Fields:
        """Send rows to the broker, which keeps them unpublished until they are committed."""
        return self._json("POST", "/stage", place, rows)

    def commit(self, batch: Fields) -> Fields:
        """Publish the staged rows of a batch; return the broker's result once all are published.

        The broker answers with the state of the batch while it publishes, and continues by itself after a restart.

        :raises BatchHeld: if the batch is committed but cannot be published, for longer than the retry timeout.
        """
        held_since: float | None = None
        while True:
            answer = self._json("POST", "/commit", {}, json.dumps(batch | {"wait_s": WAIT_S}).encode())
            if "state" not in answer:
                return answer
            now = self._clock()
            held_since = None if answer["state"] != "held" else now if held_since is None else held_since
            if held_since is not None and now - held_since > self._address.retry_s:
                raise BatchHeld(str(answer["reason"]))
            self._pause(FIRST_PAUSE_S)

    def is_committed(self, identity: Fields) -> bool:
        """Return whether a batch is committed: its rows need not be staged again. Earlier brokers do not know."""
        try:
            answer = self._json("GET", "/batch", {name: str(value) for name, value in identity.items()})
        except BrokerRefused as refusal:
            if refusal.status == NOT_FOUND:
                return False
            raise
        return bool(answer["state"] != "unknown")

    def discard(self, batch: Fields) -> None:
        """Drop the staged rows of a batch."""
        self._json("POST", "/discard", {}, json.dumps(batch).encode())

    def batches(self) -> list[Fields]:
        """Return the batches that the broker checks or publishes. :raises AccessError: without the tag *monitoring*."""
        found: list[Fields] = self._json("GET", "/batches", {})["batches"]
        return found

    # Requests

    def _json(self, method: str, path: str, query: Mapping[str, str], body: bytes | None = None) -> Fields:
        _, content = self._answer(method, path, query, body)
        return json.loads(content) if content else {}

    def _answer(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None = None
    ) -> tuple[HTTPResponse, bytes]:
        """Send a request until it is answered: after a pause if all nodes were tried.

        :raises Unreachable: if there is no answer within the retry timeout.
        """
        target = self._root + path + ("?" + urlencode(query) if query else "")
        deadline, pause_s = self._clock() + self._address.retry_s, FIRST_PAUSE_S
        attempts = 0
        while True:
            attempts += 1
            try:
                response, content = self._ask(method, target, body)
                if response.status != 503:
                    return response, self._accepted(response, content)
                problem = f"the broker is not ready: {_reason(content)}"
            except ssl.SSLCertVerificationError as error:
                self.close()
                raise Unreachable(f"the broker's certificate is not accepted: {error.verify_message}") from None
            except (OSError, HTTPException) as error:
                self.close()
                problem = str(error) or type(error).__name__
            where = self._node
            self._turn_to_next_node()
            if attempts % len(self._address.nodes):
                continue
            if self._clock() + pause_s > deadline:
                tried = f"within {self._address.retry_s:g} s (option 'retryTimeout')"
                raise Unreachable(f"no answer from {where} {tried}: {problem}")
            self._pause(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _ask(self, method: str, target: str, body: bytes | None) -> tuple[HTTPResponse, bytes]:
        if self._connection is None:
            self._connection = _connected(self._node, self._address.tls, self._connect_timeout_s)
        self._connection.request(method, target, body, self._headers)
        response = self._connection.getresponse()
        return response, response.read()

    def _accepted(self, response: HTTPResponse, content: bytes) -> bytes:
        """Return the content of a successful answer."""
        if response.status < 300:
            return content
        reason = _reason(content)
        if response.status in (401, 403):
            raise AccessError(
                f"{self._node} refuses user '{self._address.username}' in virtual host '{self._address.vhost}' "
                f"({response.status}): {reason}"
            )
        raise BrokerRefused(response.status, reason, _fields(content))

    @property
    def _node(self) -> NodeUrl:
        return self._address.nodes[self._number]

    def _turn_to_next_node(self) -> None:
        if len(self._address.nodes) > 1:
            self.close()
            self._number = (self._number + 1) % len(self._address.nodes)


def _matching(pattern: str, found: Mapping[str, dict[str, Partition]]) -> dict[str, dict[str, Partition]]:
    """Return the queues whose whole name matches. A partition of a matching super stream is not listed twice."""
    matches = re.compile(pattern).fullmatch
    chosen = {queue: partitions for queue, partitions in found.items() if matches(queue)}
    inside = {each.queue for queue, partitions in chosen.items() for each in partitions.values() if each.queue != queue}
    return {queue: partitions for queue, partitions in chosen.items() if queue not in inside}


def _connected(node: NodeUrl, tls: TlsOptions, timeout_s: float) -> HTTPConnection:
    made = HTTPConnection if node.scheme == "http" else partial(HTTPSConnection, context=_tls_context(tls))
    connection = made(node.host, node.port, timeout=timeout_s)
    connection.connect()
    connection.timeout = TIMEOUT_S  # used when the connection is reopened
    connection.sock.settimeout(TIMEOUT_S)
    return connection


def _tls_context(tls: TlsOptions) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca)
    if not tls.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate is not None:
        context.load_cert_chain(tls.certificate, tls.key)
    return context


def _fields(content: bytes) -> Fields:
    try:
        fields = json.loads(content)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _reason(content: bytes) -> str:
    fields = _fields(content)
    return str(fields.get("reason") or fields.get("error") or "the broker gave no reason")
