"""log-exchange: publishes the lines of the log to ``amq.rabbitmq.log``, as RabbitMQ's ``log.exchange`` does.

The routing key is the level: ``debug``, ``info``, ``warning``, ``error``. Nothing is published while nothing is bound.
"""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from weakref import ref

from gateway.api import Event, EventListener, ObservedVhost, Properties, hookimpl, log_line

EXCHANGE: Final = "amq.rabbitmq.log"

#: The lines of other threads that may wait for the next line or event of the kernel's thread; older ones are dropped.
_MOST_WAITING: Final = 1000


class LogExchange(EventListener):
    """Publishes log lines. Those of other threads follow with the next line or event of the kernel's thread."""

    def __init__(self, vhost: ObservedVhost) -> None:
        self._vhost = vhost
        self._kernel_thread = threading.get_ident()
        self._waiting: deque[logging.LogRecord] = deque(maxlen=_MOST_WAITING)
        self._is_publishing = False
        vhost.provide_exchange(EXCHANGE)
        logging.getLogger("gateway").addHandler(_Handler(self))

    def on_event(self, event: Event) -> None:
        """Publish the lines of other threads."""
        self._publish_waiting()

    def write(self, record: logging.LogRecord) -> None:
        """Publish a line, if this is the kernel's thread. Lines that the publishing itself causes are left out."""
        if self._is_publishing:
            return
        self._waiting.append(record)
        if threading.get_ident() == self._kernel_thread:
            self._publish_waiting()

    def _publish_waiting(self) -> None:
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._waiting:
                record = self._waiting.popleft()
                if self._vhost.is_bound(EXCHANGE):
                    self._publish(record)
        finally:
            self._is_publishing = False

    def _publish(self, record: logging.LogRecord) -> None:
        timestamp = datetime.fromtimestamp(int(record.created), UTC)
        headers = {"node": self._vhost.node}
        properties = Properties(content_type="text/plain", headers=headers, timestamp=timestamp)
        self._vhost.publish(EXCHANGE, record.levelname.lower(), properties, log_line(record).encode())


class _Handler(logging.Handler):
    """Passes log records to the listener while it is in use, and removes itself after that."""

    def __init__(self, listener: LogExchange) -> None:
        super().__init__()
        self._listener = ref(listener)

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        listener = self._listener()
        if listener is None:
            logging.getLogger("gateway").removeHandler(self)
            return
        try:
            listener.write(record)
        except Exception:  # as all handlers of the standard library: a line that is lost must not stop its writer
            self.handleError(record)


@hookimpl
def gateway_event_listeners(vhost: ObservedVhost) -> Sequence[EventListener]:
    """Offer the listener."""
    return [LogExchange(vhost)]
