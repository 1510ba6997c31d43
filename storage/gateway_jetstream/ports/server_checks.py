"""The servers that did not answer when a node started: they are checked when they do.

What was checked once is remembered in the metadata, so a node can start while a majority of the servers answers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.cluster.errors import ClusterMismatch, Outdated, Unanswered
from gateway.cluster.metadata import NEVER, Key, Metadata
from gateway.logs import StructuredLog
from gateway_jetstream.ports.admission import ServerUnreachable, check_server

_log: Final = StructuredLog("cluster")

#: The record of the servers that were checked: monitoring URL to the server's name.
CHECKED: Final[Key] = ("servers",)

#: The time between two attempts to check a server, in seconds.
_AGAIN_S: Final = 5.0

_MOST_WRITES: Final = 3


async def remember(metadata: Metadata, servers: Mapping[str, str]) -> None:
    """Note that servers were checked, by their URLs. :raises Unanswered: if the engine does not answer."""
    checked = dict(servers)
    for _ in range(_MOST_WRITES):
        entry = await metadata.get(CHECKED)
        known = {} if entry is None else decode_checked(entry.value or b"")
        if known | checked == known:
            return
        try:
            await metadata.put(CHECKED, encode_checked(known | checked), NEVER if entry is None else entry.revision)
        except Outdated:
            continue
        return
    raise Unanswered("the record of the checked servers has another revision with each attempt to write it")


async def require_checked(metadata: Metadata, missing: Sequence[ServerUnreachable]) -> None:
    """Require that servers that do not answer were checked once. :raises ClusterMismatch: if one was not."""
    try:
        entry = await metadata.get(CHECKED)
    except Unanswered as error:
        raise ClusterMismatch(f"{missing[0]}; and the record of the checked servers cannot be read: {error}") from None
    known = {} if entry is None else decode_checked(entry.value or b"")
    for each in missing:
        if each.url not in known:
            raise ClusterMismatch(f"{each}; it was never checked, so no node starts without it")


class PendingChecks:
    """Checks servers that did not answer, until each has. ``unfit`` is called with the error of one that is not fit."""

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's interfaces are not types
        missing: Sequence[ServerUnreachable],
        unfit: Callable[[ClusterMismatch], None],
    ) -> None:
        self.urls = [each.url for each in missing]
        self._reactor = reactor
        self._unfit = unfit
        self._is_closed = False
        for each in missing:
            _log.warning("a NATS server does not answer, it is checked when it does", server=each.url, reason=str(each))
        self._later()

    def close(self) -> None:
        """Check nothing more."""
        self._is_closed = True

    def _later(self) -> None:
        if self.urls and not self._is_closed:
            self._reactor.callLater(_AGAIN_S, lambda: Deferred.fromCoroutine(self._check()))

    async def _check(self) -> None:
        for url in tuple(self.urls):
            if self._is_closed:
                return
            try:
                name = await check_server(self._reactor, url)
            except ServerUnreachable:
                continue
            except ClusterMismatch as error:
                _log.error("a NATS server that came back is not fit", server=url, reason=str(error))
                self.close()
                self._unfit(error)
                return
            self.urls.remove(url)
            _log.info("a NATS server answers again, and is fit", server=url, name=name)
        self._later()


def encode_checked(checked: Mapping[str, str]) -> bytes:
    """Return the record as JSON."""
    return json.dumps(dict(checked), sort_keys=True).encode()


def decode_checked(data: bytes) -> dict[str, str]:
    """Return the servers of a record; empty if it cannot be read."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(fields, dict):
        return {}
    return {url: name for url, name in fields.items() if isinstance(name, str)}
