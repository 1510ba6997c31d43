"""/exchanges/.../kept: the messages that an exchange keeps for new destinations. RabbitMQ has no such resource."""

from collections.abc import Generator

from gateway.access import Operation
from gateway.kernel.clock import drained
from gateway.kernel.routing.kept_messages import KeptMessages
from gateway.management.http.bodies import integer
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.listing import Items, Page
from gateway.management.http.routes import LongTask, Routes, Streamed
from gateway.management.messages import content_view
from gateway.management.resources.virtual_hosts.exchanges import existing_exchange
from gateway.management.views.json import encode

routes = Routes()

_PATH = "/exchanges/<vhost>/<name>/kept"

#: Bytes of each body in a list, by default and at most.
_SHOWN = 1024
_MAX_SHOWN = 64 * 1024


@routes.get(_PATH)
def kept_messages(call: Call, vhost: str, name: str) -> Streamed:
    """List the messages that an exchange keeps, the oldest first. ``key`` is the name under which it keeps one."""
    kept = _kept(call, vhost, name)
    page = Page.of({"page": "1", **call.query})
    assert page is not None
    truncate = min(max(integer(call.query.get("truncate", _SHOWN), "truncate"), 0), _MAX_SHOWN)
    keys = kept.names
    first = page.first_of(len(keys))
    items = _written(kept, keys[first : first + page.size], truncate)
    return Streamed(page.written(items, len(keys), len(keys)))


@routes.delete(_PATH)
def drop(call: Call, vhost: str, name: str) -> LongTask:
    """Drop the message that an exchange keeps under the ``key`` of the query; without a key, all messages."""
    kept = _kept(call, vhost, name)
    unknown = sorted(call.query.keys() - {"key"})
    if unknown:
        raise bad_request(f"unknown field '{unknown[0]}' of the query: 'key' names the message to drop")
    keys = [call.query["key"]] if "key" in call.query else kept.names
    if "key" in call.query and kept.get(keys[0]) is None:
        raise missing()
    call.audit_details = {"messages": len(keys), **call.query}
    return LongTask(_dropped(kept, keys))


def _kept(call: Call, vhost: str, name: str) -> KeptMessages:
    """Return the messages that an exchange keeps; access needs the read permission, as for delayed ones."""
    virtual_host = call.vhost(vhost)
    exchange = existing_exchange(virtual_host, name)
    call.permissions(virtual_host).require(Operation.READ, "exchange", exchange.name)
    return virtual_host.keeping.kept_by(exchange.name)


def _written(kept: KeptMessages, keys: list[str], truncate: int) -> Items:
    """Yield the messages of a page, encoded one at a time: they may be large. Return their number."""
    written = 0
    for key in keys:
        message = kept.get(key)
        if message is None:  # dropped since the request
            yield None
            continue
        view = {"key": key} | content_view(message, "auto", message.body[:truncate])
        yield (b"," if written else b"") + encode(view)
        written += 1
    return written


def _dropped(kept: KeptMessages, keys: list[str]) -> Generator[None, None, None]:
    for key in drained(keys):
        kept.drop(key)
        yield
