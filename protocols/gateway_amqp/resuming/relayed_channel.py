"""One channel of a client, as its frames pass between the client and the leader.

Frames pass unchanged until another leader serves the client; then numbers and tags are translated. Each call for a
frame returns what is passed on in its place: ``None`` for the frame itself, ``b""`` for nothing.
"""

from struct import Struct
from typing import Final

from pamqp import commands
from pamqp.base import Frame

from gateway.kernel.errors import ProtocolViolation
from gateway_amqp.content import BODY, HEADER, METHOD
from gateway_amqp.methods import decode_method, encode_method
from gateway_amqp.resuming import indexes
from gateway_amqp.resuming.channel_settings import OFFSET, ChannelSettings, Mode
from gateway_amqp.resuming.delivery_tags import DeliveryTags
from gateway_amqp.resuming.requests import UnansweredRequest, UnansweredRequests
from gateway_amqp.resuming.transient_topology import TransientTopology
from gateway_amqp.resuming.unconfirmed import MOST_OF_A_MESSAGE, Kept, Unconfirmed
from gateway_amqp.resuming.whole_contents import content_end

#: Octets of a frame before its payload, and before the arguments of a method.
_HEAD: Final = 7
_ARGUMENTS: Final = _HEAD + 4

#: Octets of a content header's payload before its properties.
_BEFORE_PROPERTIES: Final = 12

_NUMBER: Final = Struct(">QB")
_SIZE: Final = Struct(">Q")
_OFFSET_NAME: Final = OFFSET.encode()
_SETTLEMENTS: Final = frozenset({indexes.ACK, indexes.NACK, indexes.REJECT})

#: ``missing`` while the header of a content has not come.
_HEADER_AWAITED: Final = -1


class RelayedChannel:
    """Owns what is known of one channel. ``missing`` is not 0 while the content of a delivery is on its way.

    ``after`` is the end of a content that was handled together with its method, else 0; who reads it sets it to 0.
    ``trouble`` is the reply code and the reason why another leader cannot go on with the channel.
    """

    __slots__ = (
        "_consumer",
        "_has_actions",
        "_has_declared",
        "_is_get",
        "_parts",
        "_parts_missing",
        "_parts_size",
        "_place",
        "_properties",
        "_requests",
        "_tag",
        "after",
        "has_published",
        "is_closing",
        "is_resumed",
        "missing",
        "number",
        "settings",
        "tags",
        "unconfirmed",
    )

    def __init__(self, number: int, topology: TransientTopology, kept: Kept) -> None:
        self.number = number
        self.missing = 0
        self.after = 0
        self.has_published = False
        self.is_closing = False
        self.is_resumed = False
        self.settings = ChannelSettings(topology)
        self.tags = DeliveryTags()
        self.unconfirmed = Unconfirmed(kept)
        self._requests = UnansweredRequests(self.settings.learn)
        self._place = 0
        self._has_declared = True
        self._has_actions = False
        # the content that the client is sending: its frames, unless it is too large, and the rest of its size
        self._parts: list[bytes] | None = None
        self._parts_size = 0
        self._parts_missing = 0
        # the delivery that is on its way to the client
        self._tag = 0
        self._is_get = False
        self._consumer = b""
        self._properties = b""

    # From the client

    def from_client(self, kind: int, data: bytes, start: int, stop: int) -> bytes | None:
        """Note a frame of the client; see the module for what is returned."""
        if kind != METHOD:
            if self._parts_missing:
                self._add_part(kind, data, start, stop)
            return None
        index = data[start + _HEAD : start + _ARGUMENTS]
        if index == indexes.PUBLISH:
            after = content_end(data, stop, self.number)
            if 0 < after <= start + MOST_OF_A_MESSAGE:
                self.after = after
                self._parts_missing = 0
                self._parts, self._parts_size = [data[start:after]], after - start
                self._published()
                return None
            self._parts, self._parts_size, self._parts_missing = [data[start:stop]], stop - start, _HEADER_AWAITED
            return None
        if index in _SETTLEMENTS:
            self._has_actions = True
            return self.tags.for_leader(data[start:stop], _ARGUMENTS) if self.tags.offset else None
        return self._request(index, data[start + _HEAD : stop - 1])

    def _add_part(self, kind: int, data: bytes, start: int, stop: int) -> None:
        if self._parts_missing == _HEADER_AWAITED:
            if kind != HEADER or stop - start < _HEAD + _BEFORE_PROPERTIES + 1:
                return  # the leader will refuse it
            (self._parts_missing,) = _SIZE.unpack_from(data, start + _ARGUMENTS)
        elif kind == BODY:
            self._parts_missing = max(0, self._parts_missing - (stop - start - _HEAD - 1))
        self._parts_size += stop - start
        if self._parts_size > MOST_OF_A_MESSAGE:
            self._parts = None
        elif self._parts is not None:
            self._parts.append(data[start:stop])
        if not self._parts_missing:
            self._published()

    def _published(self) -> None:
        parts, self._parts = self._parts, None
        self._has_actions = self.has_published = True
        if self.settings.mode is Mode.CONFIRM:
            self._place += 1
            self.unconfirmed.published(self._place, parts, self._parts_size if parts is not None else 0)
        self._parts_size = 0

    def _request(self, index: bytes, payload: bytes) -> bytes | None:
        if index == indexes.CHANNEL_CLOSE:
            self.is_closing = True
            return None
        answers = indexes.ANSWERS.get(index)
        if answers is None:
            return None
        try:
            method = decode_method(payload)
        except ProtocolViolation:
            return None  # the leader refuses it
        self._place += 1
        self._requests.add(UnansweredRequest(method, () if getattr(method, "nowait", False) else answers, self._place))
        self._change_mode(method)
        if self._has_declared:
            return None
        if isinstance(method, commands.Queue.Declare):
            self._has_declared = True
            return None
        explicit = self.settings.explicit(method)
        return None if explicit is None else encode_method(self.number, explicit)

    def _change_mode(self, method: Frame) -> None:
        if isinstance(method, commands.Confirm.Select):
            self.settings.mode = Mode.CONFIRM
        elif isinstance(method, commands.Tx.Select):
            self.settings.mode = Mode.TRANSACTION
            self._has_actions = False
        elif isinstance(method, commands.Tx.Commit | commands.Tx.Rollback):
            self._has_actions = False

    # From the leader

    def from_leader(self, kind: int, data: bytes, start: int, stop: int) -> bytes | None:
        """Note a frame of the leader; see the module for what is returned."""
        if kind == METHOD:
            return self._method(data[start + _HEAD : start + _ARGUMENTS], data, start, stop)
        if self.missing == _HEADER_AWAITED and kind == HEADER:
            (self.missing,) = _SIZE.unpack_from(data, start + _ARGUMENTS)
            self._note_properties(data, start)
        elif kind == BODY:
            self.missing = max(0, self.missing - (stop - start - _HEAD - 1))
        if not self.missing:
            self._delivered()
        return None

    def _method(self, index: bytes, data: bytes, start: int, stop: int) -> bytes | None:
        if index == indexes.DELIVER:
            at = start + _ARGUMENTS + 1 + data[start + _ARGUMENTS]
            self._consumer = data[start + _ARGUMENTS + 1 : at]
            return self._deliver(data, start, stop, at)
        if index == indexes.GET_OK:
            self._is_get = True
            return self._deliver(data, start, stop, start + _ARGUMENTS)
        if index == indexes.RETURN:
            self.missing = _HEADER_AWAITED
            return None
        if index in (indexes.ACK, indexes.NACK):
            return self._confirmed(index, data, start, stop)
        if index == indexes.CANCEL:
            at = start + _ARGUMENTS
            self.settings.cancelled(data[at + 1 : at + 1 + data[at]])
            return None
        return self._answered(index, data[start + _HEAD : stop - 1])

    def _deliver(self, data: bytes, start: int, stop: int, at: int) -> bytes | None:
        self.missing = _HEADER_AWAITED
        self._tag = int.from_bytes(data[at : at + 8])
        after = content_end(data, stop, self.number)
        if after:
            self.after = after
            self.missing = 0
            self._note_properties(data, stop)
            self._delivered()
        return self.tags.for_client(data[start:stop], at - start) if self.tags.offset else None

    def _note_properties(self, data: bytes, start: int) -> None:
        """Keep the properties in the content header at ``start``, if they have the place of a message in its stream."""
        begin = start + _HEAD + _BEFORE_PROPERTIES
        stop = start + _HEAD + int.from_bytes(data[start + 3 : start + _HEAD])
        if stop - begin > len(_OFFSET_NAME) and data.find(_OFFSET_NAME, begin, stop) >= 0:
            self._properties = data[begin:stop]

    def _delivered(self) -> None:
        """Note that a content is whole; that of a return has no tag."""
        if self._tag:
            self.tags.delivered(self._tag)
            self._tag = 0
        if self._is_get:
            self._is_get = False
            self._requests.answered(indexes.GET_OK, b"")
        if self._properties:
            consumer = self.settings.consumers.get(self._consumer)
            if consumer is not None:
                consumer.properties = self._properties
            self._properties = b""
        self._consumer = b""

    def _confirmed(self, index: bytes, data: bytes, start: int, stop: int) -> bytes | None:
        at = start + _ARGUMENTS
        number, flags = _NUMBER.unpack_from(data, at)
        publish = self.unconfirmed.confirmed(number, is_multiple=bool(flags & 1))
        if publish is None:
            return b"" if self.is_resumed else None
        self._requests.passed(publish.place)
        if not self.unconfirmed.has_changed_leader:
            return None
        return data[start:at] + _SIZE.pack(publish.number) + data[at + 8 : stop]

    def _answered(self, index: bytes, payload: bytes) -> bytes | None:
        request = self._requests.answered(index, payload)
        if request is None:
            return None
        return b"" if request.is_own else None

    @property
    def awaits_answer(self) -> bool:
        """Whether the client waits for the answer to a request."""
        return self.is_closing or any(request.answers for request in self._requests.waiting())

    @property
    def _is_committing(self) -> bool:
        return any(isinstance(request.method, commands.Tx.Commit) for request in self._requests.waiting())

    # Another leader

    def forget(self) -> None:
        """Release what is kept to be published again: the channel is closed."""
        self.unconfirmed.forget()

    def leader_lost(self) -> None:
        """Forget the delivery that was on its way: the client got nothing of it."""
        self.missing = self._tag = 0
        self._is_get = False
        self._consumer = self._properties = b""

    @property
    def trouble(self) -> tuple[int, str] | None:
        """See the class."""
        if self.settings.mode is Mode.TRANSACTION and (self._has_actions or self._is_committing):
            return 406, "the leader of the cluster changed during a transaction, which may be committed or not"
        is_lacking = self._parts_missing and self._parts is None
        if is_lacking or any(publish.frames is None for publish in self.unconfirmed.waiting()):
            return 311, "the leader of the cluster changed, and a message was too large to be kept"
        return None

    def begin_again(self) -> bytes:
        """Return the frames that continue the channel on another leader."""
        own = list(map(_own_request, self.settings.requests()))
        waiting = self._requests.waiting()
        publishes = self.unconfirmed.begin_again()
        self._requests.begin_again(own)
        self.tags.begin_again()
        self.is_resumed, self._has_declared = True, False
        pieces = [encode_method(self.number, request.method) for request in own]
        again = [(request.place, [self._again(request)]) for request in waiting]
        again += [(publish.place, publish.frames or []) for publish in publishes]
        for _, frames in sorted(again, key=_place):
            pieces += frames
        return b"".join(pieces + (self._parts or []))

    def _again(self, request: UnansweredRequest) -> bytes:
        method = request.method
        if isinstance(method, commands.Queue.Declare):
            self._has_declared = True
        explicit = None if self._has_declared else self.settings.explicit(method)
        return encode_method(self.number, method if explicit is None else explicit)


def _own_request(method: Frame) -> UnansweredRequest:
    return UnansweredRequest(method, indexes.ANSWERS[method.index.to_bytes(4)], is_own=True)


def _place(item: tuple[int, list[bytes]]) -> int:
    return item[0]
