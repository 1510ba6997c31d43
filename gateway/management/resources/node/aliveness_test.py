"""/aliveness-test: publishes a message in a virtual host and fetches it."""

from typing import Final

from gateway.access import Operation
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue_operations import require_queue
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Fields, Routes

routes = Routes()

#: The queue is not deleted, as in RabbitMQ: checks come every few seconds.
_QUEUE: Final = "aliveness-test"
_BODY: Final = b"test_message"


@routes.get("/aliveness-test/<vhost>")
def test(call: Call, vhost: str) -> Fields:
    """Declare a queue, publish a message to it and fetch the message."""
    virtual_host = call.vhost(vhost)
    permissions = call.permissions(virtual_host)
    for operation in Operation:
        permissions.require(operation, "queue", _QUEUE)
    queue = virtual_host.queue_by_name.get(_QUEUE) or virtual_host.declare_queue(_QUEUE)
    virtual_host.publish(virtual_host.default_exchange, Message("", _QUEUE, native_header(Properties()), _BODY))
    entry = require_queue(queue, "basic.get").get()
    if entry is None:
        raise HttpError(500, "aliveness-test", "the published message was not in the queue")
    queue.settle(entry, DeliveryOutcome.ACCEPTED)
    return {"status": "ok"}
