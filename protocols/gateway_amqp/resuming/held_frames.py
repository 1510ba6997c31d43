"""The frames that a client sends while no leader serves it: whether it asks for an answer, and whether it publishes."""

from struct import error as StructError  # noqa: N812 - it is a class
from typing import Final

from gateway.kernel.errors import ProtocolViolation
from gateway_amqp.content import METHOD, read_frame_head
from gateway_amqp.resuming import indexes

_ASKING: Final = frozenset({*indexes.ANSWERS, indexes.CHANNEL_CLOSE, indexes.CLOSE, indexes.UPDATE_SECRET})


class HeldFrames:
    """Notes what one client sends: ``have_question`` after a request, ``have_publish`` after a publish."""

    def __init__(self) -> None:
        self.have_question = False
        self.have_publish = False

    def note(self, data: bytes) -> None:
        """Note bytes that begin with a frame; the last frame need not be whole."""
        position, end = 0, len(data)
        try:
            while end - position >= 11:
                kind, _, size = read_frame_head(data, position)
                if kind == METHOD:
                    index = data[position + 7 : position + 11]
                    self.have_question |= index in _ASKING
                    self.have_publish |= index == indexes.PUBLISH
                position += 8 + size
        except (ProtocolViolation, StructError):
            self.have_question = True  # the leader refuses it, which is an answer
