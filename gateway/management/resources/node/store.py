"""/store: the size of the store's file, its quarantined records, and its compaction."""

from typing import Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, Reply, Routes

routes = Routes()

#: Maximum number of quarantined records in a response; ``gateway repair`` lists all.
_MAX_LISTED: Final = 100


@routes.get("/store", level=AccessLevel.MONITORING)
def store(call: Call) -> Fields:
    """Return the size of the store, the progress of a compaction, and the quarantined records."""
    quarantined = call.broker.store_reports.set_aside
    listed = [
        {"kind": each.kind, "key": [str(part) for part in each.key], "reason": each.reason}
        for each in quarantined[:_MAX_LISTED]
    ]
    return {**call.context.store_info(), "set_aside": len(quarantined), "records_set_aside": listed}


@routes.post("/store/compact", level=AccessLevel.ADMINISTRATOR)
def compact(call: Call) -> Reply:
    """Start a compaction; ``GET /store`` returns its progress."""
    if not call.context.store_info():
        raise bad_request("the store has no files to compact")
    if not call.context.compact_store():
        raise bad_request("a compaction is already in progress")
    return Reply(202)
