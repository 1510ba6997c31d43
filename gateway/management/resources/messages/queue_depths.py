"""/queue-depths: the depths of queues as of a moment. RabbitMQ has no such resource."""

from typing import Final

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from gateway.access import Operation
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.depths.depth_sample import DepthPage, DepthPlace
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.routes import Fields, Routes
from gateway.management.pipeline.streams import is_number, whole_number

routes = Routes()

_SEPARATOR: Final = "-"


@routes.get("/queue-depths/<vhost>", level=AccessLevel.USER)
def queue_depths(call: Call, vhost: str) -> "Deferred[Fields]":
    """List the depths of the queues that the user may read, as of a moment (ms), 500 at a time, and their sample.

    A user with the tag monitoring gets all queues.
    """
    virtual_host = call.accessible_vhost(vhost)
    files = call.context.depth_files
    after = call.query.get("after", "")
    place = succeed(_place(after)) if after else files.find(whole_number(call, "at"))

    def page(found: DepthPlace | None) -> "Deferred[DepthPage] | None":
        return None if found is None else files.page(found, virtual_host.name)

    def shown(found: DepthPage | None) -> Fields:
        return {"recording": call.context.records_depths, **_view(call, virtual_host, found)}

    return place.addCallback(page).addCallbacks(shown, _unreadable)


def _place(after: str) -> DepthPlace | None:
    """Return the place after which an answer continues. :raises HttpError: if it is not from an earlier answer."""
    numbers = after.split(_SEPARATOR)
    if len(numbers) != len(DepthPlace._fields) or not all(map(is_number, numbers)):
        raise bad_request("'after' must be the 'next' of the answer before")
    return DepthPlace(*map(int, numbers))


def _view(call: Call, vhost: VirtualHost, page: DepthPage | None) -> Fields:
    if page is None:
        return {"sampled_from_ms": None, "sampled_to_ms": None, "queues": [], "next": None}
    permissions, sees_all = call.permissions(vhost), call.may(AccessLevel.MONITORING)
    return {
        "sampled_from_ms": page.begun_ms,
        "sampled_to_ms": page.ended_ms,
        "queues": [
            {"name": name, **depth._asdict()}
            for name, depth in page.depths
            if sees_all or permissions.may(Operation.READ, name, "queue")
        ],
        "next": None if page.next is None else _SEPARATOR.join(map(str, page.next)),
    }


def _unreadable(failure: Failure) -> Failure:
    """Return the error for the client. :raises HttpError: instead of errors of the disk or of SQLite."""
    if isinstance(failure.value, HttpError):
        return failure
    if isinstance(failure.value, LookupError):
        raise HttpError(410, "gone", "the depths of that moment were removed meanwhile: repeat the query")
    raise HttpError(503, "not_now", f"the depths of queues cannot be read: {failure.getErrorMessage()}")
