"""/store: how full the file of the store is, what is set aside in it, and giving its free space back."""

from typing import Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, Reply, Routes

routes = Routes()

#: So many records that are set aside are listed; ``gateway repair`` lists all.
_MAX_LISTED: Final = 100


@routes.get("/store", level=AccessLevel.MONITORING)
def store(call: Call) -> Fields:
    """Tell the size of the store, how far a compaction is, and which records cannot be used."""
    aside = call.broker.set_aside
    listed = [
        {"kind": each.kind, "key": [str(part) for part in each.key], "reason": each.reason}
        for each in aside[:_MAX_LISTED]
    ]
    return {**call.context.store_facts(), "set_aside": len(aside), "records_set_aside": listed}


@routes.post("/store/compact", level=AccessLevel.ADMINISTRATOR)
def compact(call: Call) -> Reply:
    """Begin to give free space back; ``GET /store`` tells how far it is."""
    if not call.context.store_facts():
        raise bad_request("the store keeps nothing in files")
    if not call.context.compact_store():
        raise bad_request("a compaction is under way")
    return Reply(202)
