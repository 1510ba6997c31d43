"""The key-value layout of JetStream: a stream that keeps the last message of each subject."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.publishing import EXPECTED_SEQUENCE, MESSAGE_ID, StreamPublisher
from gateway_jetstream.jetstream.push_consumer import PushConsumer
from gateway_jetstream.jetstream.stream_message import StreamMessage, last_of_subject

_OPERATION: Final = "KV-Operation"
_DELETED: Final = ("DEL", "PURGE")


@dataclass(frozen=True, slots=True)
class KeyValueEntry:
    """The last write of a key; ``value`` is ``None`` if it was deleted."""

    key: str
    value: bytes | None
    revision: int


class KeyValue:
    """A bucket. Keys are subjects: tokens with dots between them."""

    def __init__(
        self, api: JetStreamApi, publish: StreamPublisher, reactor: Any, bucket: str
    ) -> None:  # Any: as elsewhere
        self._api = api
        self._publish = publish
        self._reactor = reactor
        self.stream = f"KV_{bucket}"
        self._prefix = f"$KV.{bucket}."

    def config(self, replicas: int) -> Mapping[str, Any]:
        """Return the configuration of the bucket's stream."""
        return {
            "name": self.stream,
            "subjects": [f"{self._prefix}>"],
            "retention": "limits",
            "storage": "file",
            "num_replicas": replicas,
            "max_msgs_per_subject": 1,
            "discard": "new",
            "deny_delete": True,
            "allow_rollup_hdrs": True,
            "allow_direct": True,
            "duplicate_window": 120_000_000_000,
        }

    async def get(self, key: str, timeout_s: float | None = None) -> KeyValueEntry | None:
        """Return the last write of a key as the leader has it, which may have lost its majority."""
        found = await last_of_subject(self._api, self.stream, self._prefix + key, timeout_s)
        return None if found is None else self._entry(found)

    async def put(
        self, key: str, value: bytes | None, timeout_s: float, *, expected: int | None = None, message_id: str = ""
    ) -> int:
        """Write a key, or delete it; return the revision. With ``expected`` only if that is the last one.

        :raises WrongLastSequence: if it is not.
        """
        subject, payload, fields = self.message(key, value)
        if expected is not None:
            fields[EXPECTED_SEQUENCE] = str(expected)
        if message_id:
            fields[MESSAGE_ID] = message_id
        return (await self._publish(subject, payload, fields, timeout_s)).sequence

    def message(self, key: str, value: bytes | None) -> tuple[str, bytes, dict[str, str]]:
        """Return subject, payload and headers of the message that writes or deletes a key."""
        return self._prefix + key, value or b"", {_OPERATION: "DEL"} if value is None else {}

    async def delete(self, key: str, timeout_s: float, *, expected: int | None = None, message_id: str = "") -> int:
        """Delete a key; return the revision of the deletion, which is the last one from then on."""
        return await self.put(key, None, timeout_s, expected=expected, message_id=message_id)

    def watch(
        self, pattern: str, on_entry: Callable[[KeyValueEntry], None], on_current: Callable[[], None]
    ) -> PushConsumer:
        """Report the last write of each key that matches, then each further one, in the order of revisions."""
        return PushConsumer(
            self._api,
            self._reactor,
            self.stream,
            [self._prefix + pattern],
            lambda message: on_entry(self._entry(message)),
            start={"deliver_policy": "last_per_subject"},
            on_current=on_current,
        )

    def _entry(self, message: StreamMessage) -> KeyValueEntry:
        is_deleted = bool(message.header) and message.field(_OPERATION) in _DELETED
        key = message.subject.removeprefix(self._prefix)
        return KeyValueEntry(key, None if is_deleted else message.payload, message.sequence)
