"""A consumer that asks for messages in batches, ten times a second while there are some.

A server and a reader that handle each message at once spend most of their time on waking up. Beside them, a writer
waits longer for its own answers.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from gateway_jetstream.codec.headers import NatsHeaders
from gateway_jetstream.jetstream.ordered_consumer import HEARTBEAT_S, NS, OrderedConsumer
from gateway_jetstream.jetstream.stream_message import DeliveryPlace

#: The pause between two pulls, unless more messages are known to wait, in seconds.
PAUSE_S: Final = 0.1

#: The limits of a batch. The largest record of a log is far smaller.
_MOST_MESSAGES: Final = 1000
_MOST_BYTES: Final = 4 * 1024 * 1024

#: The answers that end a pull: no message, no more until it expires, and no room for the next one.
_NO_MESSAGES: Final = 404
_EXPIRED: Final = 408
_CONFLICT: Final = 409
_IS_FULL: Final = "Message Size Exceeds MaxBytes"


class PullConsumer(OrderedConsumer):
    """Delivers a message up to a tenth of a second after it was stored, the first one after a quiet time at once.

    One pull is open at a time: of what is there, or, if that was nothing, of the next message. While the gate is
    closed there is no further one, so at most a batch of 4 MiB comes.
    """

    _inbox = ""
    #: What the open pull may deliver, what it has delivered, and whether it waits for a message.
    _wanted = _got = 0
    _waits = False
    _pause: Any = None

    def _forget(self) -> None:
        if self._pause is not None and self._pause.active():
            self._pause.cancel()
        super()._forget()

    def _config(self, inbox: str) -> Mapping[str, Any]:
        return {}

    def _created(self, inbox: str) -> None:
        self._inbox = inbox
        self._pull_when_open(waits=False)

    def _pull_when_open(self, waits: bool) -> None:
        """Pull once the gate is open; until then the server is not expected to send anything."""
        self._expect_silence()
        self._gate.when_open(partial(self._pull, self._name, waits))

    def _pull(self, name: str, waits: bool) -> None:
        """Ask for messages, unless the consumer was given up meanwhile."""
        if name != self._name or self._is_stopped or not self._api.client.is_open:
            return
        self._watch_silence()
        self._waits = waits
        self._wanted, self._got = 1 if waits else _MOST_MESSAGES, 0
        limits = {"expires": int(HEARTBEAT_S * NS)} if waits else {"no_wait": True, "max_bytes": _MOST_BYTES}
        body = json.dumps({"batch": self._wanted, **limits}).encode()
        self._api.client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{name}", body, reply=self._inbox)

    def _delivered(self, place: DeliveryPlace) -> None:
        self._got += 1
        if self._got >= self._wanted:
            self._ended(has_more=place.pending > 0 and not self._waits)

    def _take_status(self, headers: NatsHeaders, reply: str) -> None:
        """Pull again, or replace a consumer that does not answer or was removed."""
        is_full = headers.status == _CONFLICT and headers.description.startswith(_IS_FULL)
        if not is_full and headers.status not in (_NO_MESSAGES, _EXPIRED):
            self._restart_later()
        elif is_full and not self._got:
            self._restart_later()  # a message of more than a batch, which is not a record of a log
        else:
            self._ended(has_more=is_full)

    def _ended(self, has_more: bool) -> None:
        """Pull again: at once, after a pause, or, if there was nothing, until something comes."""
        was_empty = self._got == 0
        if has_more or was_empty:
            self._pull_when_open(was_empty)
        else:
            self._pause = self._reactor.callLater(PAUSE_S, self._pull_when_open, False)
