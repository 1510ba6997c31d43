"""/archives: the archives and their lag. RabbitMQ has no such resource."""

from collections.abc import Iterable

from gateway.kernel.archives.archive import Archive
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/archives")
def archives(call: Call) -> Listing[Archive]:
    """List the archives in all virtual hosts that the user may see."""
    return _listing(call, call.visible_vhosts())


@routes.get("/archives/<vhost>")
def archives_in_vhost(call: Call, vhost: str) -> Listing[Archive]:
    """List the archives in a virtual host."""
    return _listing(call, [call.vhost(vhost)])


def _listing(call: Call, vhosts: Iterable[VirtualHost]) -> Listing[Archive]:
    found = [archive for vhost in vhosts for archive in vhost.archives]
    return Listing(
        found, lambda archive: _view(call, archive), lambda archive: (archive.record.vhost, archive.record.name)
    )


def _view(call: Call, archive: Archive) -> Fields:
    record, log = archive.record, archive.log
    dropped = call.broker.vhost(record.vhost).trace_table.dropped if record.source == "trace" else 0
    return {
        "vhost": record.vhost,
        "source": record.source,
        "name": record.name,
        "table": archive.table,
        "state": _state(archive),
        "failure": archive.failure,
        "messages": len(log),
        "message_bytes": log.size_bytes,
        "next_offset": log.end,
        "filed_offset": log.first,
        "waiting_segments": len(archive.waiting),
        "waiting_bytes": archive.waiting_bytes,
        "lag_ms": archive.lag_ms,
        "held_back": sorted(call.broker.archive_context.blocked_publishers.waiting_for(archive)),
        "dropped": dropped,
    }


def _state(archive: Archive) -> str:
    if archive.is_full:
        return "full"
    if archive.failure:
        return "failing"
    return "retiring" if archive.is_retired else "running"
