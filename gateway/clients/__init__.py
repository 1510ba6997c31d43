"""Arguments and headers of the broker's own features for stock clients, by name and with units.

Each function returns a dictionary for any client: pika, aio-pika and kombu take it as ``arguments`` or ``headers``, and
``text_headers`` makes what STOMP and MQTT clients send. Only the standard library is imported.
"""

from gateway.clients.consumers import stream_consumer_arguments
from gateway.clients.deduplication import DeduplicationRule
from gateway.clients.exchanges import delayed_exchange_arguments
from gateway.clients.messages import message_headers, text_headers
from gateway.clients.queues import queue_arguments, stream_arguments

__all__ = [
    "DeduplicationRule",
    "delayed_exchange_arguments",
    "message_headers",
    "queue_arguments",
    "stream_arguments",
    "stream_consumer_arguments",
    "text_headers",
]
