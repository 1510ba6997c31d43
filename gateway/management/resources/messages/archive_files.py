"""/archive-files: the files of archives, for queries. RabbitMQ has no such resource."""

from typing import Final

from twisted.internet.defer import Deferred

from gateway.access import Operation
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.downloads import Download, Extent
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, Routes
from gateway.management.pipeline.archive_files import ArchiveName, FiledArchive
from gateway.management.pipeline.refusals import access_refused
from gateway.management.pipeline.streams import MAX_INT64, whole_number

routes = Routes()

_TRACE: Final = "trace"

#: Of the permissions that apply to the archives.
_KINDS: Final = ("exchange", "queue")

#: 9999-12-31T23:59:59.999Z in milliseconds.
_LAST_MS: Final = 253_402_300_799_999


@routes.get("/archive-files/<vhost>", level=AccessLevel.USER)
def archives_with_files(call: Call, vhost: str) -> "Deferred[Fields]":
    """List the archives with files that the user may read, with their tables; the trace needs the tag monitoring."""
    virtual_host = call.accessible_vhost(vhost)

    def readable(found: list[FiledArchive]) -> Fields:
        return {
            "archives": [
                {"source": archive.kind, "name": archive.name, "tables": tables}
                for archive, tables in found
                if _may_read(call, virtual_host, archive)
            ]
        }

    return call.context.pipeline.archives.archives(virtual_host.name).addCallback(readable)


@routes.get("/archive-files/<vhost>/list", level=AccessLevel.USER)
def files(call: Call, vhost: str) -> "Deferred[Fields]":
    """List the files of an archive, or of one table, that may have messages between two times (ms), after a file."""
    archive = _readable(call, call.accessible_vhost(vhost))
    since_ms = whole_number(call, "since") if "since" in call.query else 0
    until_ms = whole_number(call, "until") if "until" in call.query else MAX_INT64
    period = min(since_ms, _LAST_MS), min(until_ms, _LAST_MS)
    after, table = call.query.get("after", ""), call.query.get("table", "")
    return call.context.pipeline.archives.files(archive, *period, after, table)


@routes.get("/archive-files/<vhost>/columns", level=AccessLevel.USER)
def columns(call: Call, vhost: str) -> "Deferred[Fields]":
    """Return the columns of a table with messages of an archive, as Arrow serializes a schema, in Base64."""
    archive = _readable(call, call.accessible_vhost(vhost))
    return call.context.pipeline.archives.columns(archive, call.query.get("table", ""))


@routes.get("/archive-files/<vhost>/part", level=AccessLevel.USER)
def part(call: Call, vhost: str) -> "Deferred[Download]":
    """Return bytes of a listed file, perhaps fewer than requested."""
    archive = _readable(call, call.accessible_vhost(vhost))
    extent = Extent(whole_number(call, "position"), whole_number(call, "size"))
    return call.context.pipeline.archives.part(archive, call.query.get("file", ""), call.query.get("proof", ""), extent)


def _readable(call: Call, vhost: VirtualHost) -> ArchiveName:
    """Return the archive that the query names. :raises HttpError: if the user may not read it."""
    archive = ArchiveName(vhost.name, call.query.get("source", ""), call.query.get("name", ""))
    if archive.kind == _TRACE:
        call.require(AccessLevel.MONITORING)
    elif archive.kind not in _KINDS:
        raise bad_request("'source' must be 'exchange', 'queue' or 'trace'")
    elif not _may_read(call, vhost, archive):
        raise access_refused(call.permissions(vhost), Operation.READ, archive.kind, archive.name)
    return archive


def _may_read(call: Call, vhost: VirtualHost, archive: ArchiveName) -> bool:
    if archive.kind == _TRACE:
        return call.may(AccessLevel.MONITORING)
    return archive.kind in _KINDS and call.permissions(vhost).may(Operation.READ, archive.name, archive.kind)
