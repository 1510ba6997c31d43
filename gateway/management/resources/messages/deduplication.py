"""/deduplication, /queues/.../deduplication and /exchanges/.../deduplication: windows of remembered keys.

RabbitMQ's plugin has no such resource.
"""

from gateway.access import Operation
from gateway.kernel.features.deduplication_cache import DeduplicationCache
from gateway.kernel.features.deduplication_caches import EXCHANGE, QUEUE
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.resources.virtual_hosts.exchanges import existing_exchange
from gateway.management.resources.virtual_hosts.queues import permitted_queue

routes = Routes()

_OF_QUEUE = "/queues/<vhost>/<name>/deduplication"
_OF_EXCHANGE = "/exchanges/<vhost>/<name>/deduplication"


@routes.get("/deduplication/<vhost>")
def windows(call: Call, vhost: str) -> Listing[DeduplicationCache]:
    """List the windows of all queues and exchanges of a virtual host that drop repeated messages."""
    virtual_host = call.vhost(vhost)
    return Listing(virtual_host.deduplication_caches.all(), _view, lambda window: (vhost, window.name))


@routes.get(_OF_QUEUE)
def of_queue(call: Call, vhost: str, name: str) -> Fields:
    """Return the window of a queue."""
    return _view(_window_of_queue(call, vhost, name))


@routes.delete(_OF_QUEUE)
def clear_of_queue(call: Call, vhost: str, name: str) -> LongTask:
    """Forget all keys of a queue: a message that repeats an earlier one is new once more."""
    return _clearing(call, _window_of_queue(call, vhost, name))


@routes.get(_OF_EXCHANGE)
def of_exchange(call: Call, vhost: str, name: str) -> Fields:
    """Return the window of an exchange."""
    return _view(_window_of_exchange(call, vhost, name))


@routes.delete(_OF_EXCHANGE)
def clear_of_exchange(call: Call, vhost: str, name: str) -> LongTask:
    """Forget all keys of an exchange: a message that repeats an earlier one is new once more."""
    return _clearing(call, _window_of_exchange(call, vhost, name))


def _window_of_queue(call: Call, vhost: str, name: str) -> DeduplicationCache:
    """Return the window of a queue; access needs the read permission, as for a purge."""
    virtual_host = call.vhost(vhost)
    permitted_queue(call, virtual_host, name, Operation.READ)
    return _existing(virtual_host, QUEUE, name)


def _window_of_exchange(call: Call, vhost: str, name: str) -> DeduplicationCache:
    """Return the window of an exchange; access needs the read permission."""
    virtual_host = call.vhost(vhost)
    exchange = existing_exchange(virtual_host, name)
    call.permissions(virtual_host).require(Operation.READ, "exchange", exchange.name)
    return _existing(virtual_host, EXCHANGE, exchange.name)


def _existing(vhost: VirtualHost, place: str, name: str) -> DeduplicationCache:
    """Return a window. :raises HttpError: 404 if the queue or exchange does not deduplicate."""
    window = vhost.deduplication_caches.get(place, name)
    if window is None:
        raise missing()
    return window


def _clearing(call: Call, window: DeduplicationCache) -> LongTask:
    call.audit_details = {"keys": len(window)}
    return LongTask(window.clearing())


def _view(window: DeduplicationCache) -> Fields:
    """Return a window; ``keys`` counts those that are out of date and not evicted yet, too."""
    return {
        "kind": window.place,
        "name": window.name,
        "vhost": window.vhost,
        "keys": len(window),
        "size": window.size,
        "ttl_ms": window.ttl_ms,
        "durable": window.survives,
    }
