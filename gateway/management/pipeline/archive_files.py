"""The files of archives for readers over HTTP: which there are, and parts of them.

The answer that lists a file has a proof with which its parts may be read: it names the file for one archive, until the
broker restarts. So a request for a part needs no look at the archive, and no other file can be read.
"""

import hmac
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from twisted.internet.defer import Deferred, DeferredSemaphore, succeed

from gateway.management.http.downloads import Download, Extent
from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Fields
from gateway.management.pipeline.reading import EncodingResult, EncodingWorker

PARQUET: Final = "application/vnd.apache.parquet"

#: Bytes of a local file in one response; they are read while they are sent.
MOST_BYTES: Final = 16 * 2**20

#: Requests to the worker at a time; archives and readers of streams need it, too.
_MOST_REQUESTS: Final = 2


class ArchiveName(NamedTuple):
    """An archive of an ``exchange``, a ``queue`` or the ``trace`` (``kind``) of this name, in a virtual host."""

    vhost: str
    kind: str
    name: str


class FiledArchive(NamedTuple):
    """An archive that has files, and the names of the tables that have its messages."""

    archive: ArchiveName
    tables: list[str]


class ArchiveFiles:
    """The files at ``place``, a directory or the address of Iceberg tables, as the worker knows it.

    ``secret`` is that of the proofs.
    """

    def __init__(self, worker: EncodingWorker, place: Mapping[str, Any], secret: bytes) -> None:
        self._worker = worker
        self._place = place
        self._secret = secret
        self._slots = DeferredSemaphore(_MOST_REQUESTS)

    def archives(self, vhost: str) -> "Deferred[list[FiledArchive]]":
        """Return the archives that have files in a virtual host."""

        def named(answer: EncodingResult) -> list[FiledArchive]:
            tables: dict[ArchiveName, list[str]] = {}
            for kind, name, table in json.loads(answer.payload):
                tables.setdefault(ArchiveName(vhost, kind, name), []).append(table)
            return [FiledArchive(archive, found) for archive, found in tables.items()]

        return self._ask({"do": "sources", "vhost": vhost}).addCallback(named)

    def columns(self, archive: ArchiveName, table: str) -> "Deferred[Fields]":
        """Return the columns of a table that has messages of an archive. :raises HttpError: if it has none."""

        def answered(answer: EncodingResult) -> Fields:
            if not answer.payload:
                raise HttpError(
                    404, "not_found", f"no table '{table}' has messages of the {archive.kind} {archive.name}"
                )
            return {"schema": b64encode(answer.payload).decode()}

        return self._ask({"do": "columns", **archive._asdict(), "table": table}).addCallback(answered)

    def files(self, archive: ArchiveName, since_ms: int, until_ms: int, after: str, table: str) -> "Deferred[Fields]":
        """Return files that may have messages between two times, after the file ``after``, with their proofs.

        They are those of one ``table``; of all tables if it is empty.
        """

        def listed(answer: EncodingResult) -> Fields:
            found = [{**each, "proof": self._proof(archive, each["file"])} for each in json.loads(answer.payload)]
            return {"files": found, "more": answer.head["more"]}

        asked = {"do": "files", **archive._asdict(), "since_ms": since_ms, "until_ms": until_ms}
        return self._ask({**asked, "after": after, "table": table}).addCallback(listed)

    def part(self, archive: ArchiveName, file: str, proof: str, extent: Extent) -> "Deferred[Download]":
        """Return bytes of a listed file, perhaps fewer than requested. :raises HttpError: without a valid proof."""
        if not hmac.compare_digest(proof.encode(errors="replace"), self._proof(archive, file).encode()):
            raise HttpError(410, "gone", "the files of the archive have to be listed again: the broker was restarted")
        headers = {"Content-Type": PARQUET}
        if file.startswith("/"):
            return succeed(_of_local_file(Path(file), extent, headers))

        def answered(answer: EncodingResult) -> Download:
            if answer.head.get("is_gone"):
                raise _removed()
            return Download.of_bytes(answer.payload, headers)

        asked = {"do": "part", "file": file, "position": extent.position, "size": extent.size}
        return self._ask(asked).addCallback(answered)

    def _proof(self, archive: ArchiveName, file: str) -> str:
        return hmac.new(self._secret, json.dumps([*archive, file]).encode(), sha256).hexdigest()

    def _ask(self, head: dict[str, Any]) -> "Deferred[EncodingResult]":
        """Send a request to the worker when a slot is free; it is released with the answer."""
        return self._slots.acquire().addCallback(lambda _: self._answer({**head, "place": self._place}))

    def _answer(self, head: dict[str, Any]) -> "Deferred[EncodingResult]":
        waiting: Deferred[EncodingResult] = Deferred(canceller=lambda _: None)
        self._worker.ask(head, b"", lambda answer: _pass_on(answer, waiting, self._slots.release))
        return waiting


def _pass_on(answer: EncodingResult, waiting: "Deferred[EncodingResult]", release: Callable[[], None]) -> None:
    release()
    if waiting.called:
        return
    if answer.error is None:
        waiting.callback(answer)
    else:
        waiting.errback(HttpError(503, "not_now", f"the archive cannot be read: {answer.error}"))


def _of_local_file(path: Path, extent: Extent, headers: Mapping[str, str]) -> Download:
    """Return a part of a file on a local disk. :raises HttpError: if it was removed."""
    try:
        left = path.stat().st_size - extent.position
    except OSError:
        raise _removed() from None
    size = max(0, min(extent.size, left, MOST_BYTES))
    found = Download.of_file(path, [Extent(extent.position, size)], b"", headers)
    if found is None:
        raise _removed()
    return found


def _removed() -> HttpError:
    return HttpError(410, "gone", "a file of the archive was merged or removed meanwhile: repeat the query")
