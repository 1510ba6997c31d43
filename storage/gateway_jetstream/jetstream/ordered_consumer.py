"""Reads a stream in order, without gaps: what is missing is asked for again, from the last good sequence on.

The messages are pushed (``push_consumer``) or pulled (``pull_consumer``).
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from gateway.cluster.gate import Gate
from gateway_jetstream.client.subscriptions import NatsSubscription
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.codec.headers import NatsHeaders, decode_headers
from gateway_jetstream.errors import NatsError
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.stream_message import DeliveryPlace, StreamMessage, parse_place

#: A consumer sends something at least this often, in seconds. After three such times without anything it is replaced.
HEARTBEAT_S: Final = 2.0
_SILENCE_S: Final = 3 * HEARTBEAT_S

#: The server forgets a consumer that has no subscriber, or makes no pull, for so long.
_INACTIVE_S: Final = 30.0

#: The pause before a consumer that could not be made, or is on a server of no use, is made again, in seconds.
_RETRY_S: Final = 0.25

#: How often a server that is not wished for is refused before it is read from.
_MOST_REFUSED: Final = 20

NS: Final = 1_000_000_000


class OrderedConsumer(ABC):
    """Delivers messages of some subjects in rising sequence, each once, until it is stopped.

    It uses consumers of JetStream without acknowledgements, one after the other: a new one after a gap, a silence or a
    new connection. ``start`` says where the first one begins, such as ``{"deliver_policy": "all"}``. ``accepts`` tells
    whether a server should be read from; servers are drawn at random, so this is a wish. ``shuns`` tells whether a
    server is of no use: it is never read from, another one is waited for. While ``gate`` is closed, a bounded number of
    bytes more comes.
    """

    def __init__(
        self,
        api: JetStreamApi,
        reactor: Any,  # Any: Twisted's interfaces are not types
        stream: str,
        subjects: Sequence[str],
        on_message: Callable[[StreamMessage], None],
        *,
        start: Mapping[str, Any],
        on_current: Callable[[], None] = lambda: None,
        accepts: Callable[[str], bool] = lambda server: True,
        shuns: Callable[[str], bool] = lambda server: False,
        gate: Gate | None = None,
    ) -> None:
        self._api = api
        self._reactor = reactor
        self._stream = stream
        self._subjects = list(subjects)
        self._on_message = on_message
        self._on_current: Callable[[], None] | None = on_current
        self._accepts = accepts
        self._shuns = shuns
        self._gate = gate or Gate()
        self._refused = 0
        self._start = dict(start)
        #: The sequence of the last message of the stream that was delivered, and of the consumer.
        self.last_sequence = 0
        self._last_delivery = 0
        self.restarts = -1
        #: The server that the present consumer reads from; empty until it is made, and in a single server.
        self.source = ""
        self.error: NatsError | None = None
        self._name = ""
        self._subscription: NatsSubscription | None = None
        self._silence: Any = None
        self._retry: Any = None
        self._is_stopped = False
        api.client.on_opened.append(self._connected)
        self._restart()

    def stop(self) -> None:
        """Make no more calls; safe to call twice."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._api.client.on_opened.remove(self._connected)
        self._forget()

    def restart(self) -> None:
        """Use another consumer from now on, perhaps of another server."""
        self._restart()

    def _connected(self, server: str) -> None:
        self._restart()

    # ---- Consumers -----------------------------------------------------------------------------------------------

    def _restart(self) -> None:
        """Make a consumer that goes on after the last message that was delivered."""
        self._forget()
        self.restarts += 1
        self._last_delivery = 0
        self._name = f"o{secrets.token_hex(8)}"
        inbox = self._api.client.new_inbox()
        name = self._name
        self._watch_silence()
        creating: Deferred[None] = Deferred.fromCoroutine(self._create(name, inbox))
        creating.addErrback(self._not_created, name)

    async def _create(self, name: str, inbox: str) -> None:
        config = {
            "name": name,
            "ack_policy": "none",
            "max_deliver": 1,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(_INACTIVE_S * NS),
            "filter_subjects": self._subjects,
            **self._start,
            **self._config(inbox),
        }
        if self.last_sequence:
            config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": self.last_sequence + 1}
        found = await self._api.call(
            f"CONSUMER.CREATE.{self._stream}.{name}", {"stream_name": self._stream, "config": config}
        )
        if name != self._name or self._is_stopped:
            return
        self.error = None
        cluster = found.get("cluster")
        self.source = str(cluster.get("leader", "")) if isinstance(cluster, dict) else ""
        if self._is_refused(self.source):
            return
        # Not earlier: without a subscriber the server delivers nothing.
        self._subscription = self._api.client.subscribe(inbox, lambda message: self._deliver(name, message))
        self._created(inbox)
        if found.get("num_pending") == 0 and not self._last_delivery:
            self._report_current()

    def _is_refused(self, server: str) -> bool:
        """Make another consumer if a server is not wished for, or shunned; return whether one is made."""
        if not self._accepts(server) and self._refused < _MOST_REFUSED:
            self._refused += 1
            self._restart()
        elif self._shuns(server):
            self._forget()
            self._restart_later()
        else:
            return False
        return True

    def _not_created(self, failure: Failure, name: str) -> None:
        error = failure.value
        if not isinstance(error, NatsError):
            failure.raiseException()
        if name != self._name or self._is_stopped:
            return
        self.error = error
        self._restart_later()

    def _restart_later(self) -> None:
        if self._retry is None:
            self._retry = self._reactor.callLater(_RETRY_S, self._restart)

    def _forget(self) -> None:
        """Give the present consumer up, and ask the server to remove it."""
        for call in (self._silence, self._retry):
            if call is not None and call.active():
                call.cancel()
        self._silence = self._retry = None
        self.source = ""
        if self._subscription is not None:
            self._subscription.stop()
            self._subscription = None
        name, self._name = self._name, ""
        if name and self._api.client.is_open:
            self._api.client.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{name}", b"")

    def _watch_silence(self) -> None:
        if self._silence is not None and self._silence.active():
            self._silence.reset(_SILENCE_S)
        else:
            self._silence = self._reactor.callLater(_SILENCE_S, self._restart)

    def _expect_silence(self) -> None:
        if self._silence is not None and self._silence.active():
            self._silence.cancel()

    # ---- How the messages come -----------------------------------------------------------------------------------

    @abstractmethod
    def _config(self, inbox: str) -> Mapping[str, Any]:
        """Return the part of a consumer's configuration that says how its messages come."""

    @abstractmethod
    def _created(self, inbox: str) -> None:
        """Take note of a new consumer, whose messages come to a subject."""

    @abstractmethod
    def _delivered(self, place: DeliveryPlace) -> None:
        """Take note of a delivery, after it was handed on."""

    @abstractmethod
    def _take_status(self, headers: NatsHeaders, reply: str) -> None:
        """Take a message of the server with a status."""

    # ---- Deliveries ----------------------------------------------------------------------------------------------

    def _deliver(self, name: str, delivered: Delivered) -> None:
        if name != self._name or self._is_stopped:
            return
        self._watch_silence()
        if delivered.header and not delivered.reply.startswith("$JS.ACK."):
            headers = decode_headers(delivered.header)
            if headers.status:
                self._take_status(headers, delivered.reply)
                return
        place = parse_place(delivered.reply)
        if place.consumer_sequence != self._last_delivery + 1:
            self._restart()
            return
        message = StreamMessage(
            delivered.subject, place.stream_sequence, delivered.header, delivered.payload, place.pending
        )
        self._last_delivery = place.consumer_sequence
        self.last_sequence = place.stream_sequence
        self._on_message(message)
        if place.pending == 0:
            self._report_current()
        if name == self._name:
            self._delivered(place)

    def _report_current(self) -> None:
        on_current, self._on_current = self._on_current, None
        if on_current is not None:
            on_current()
