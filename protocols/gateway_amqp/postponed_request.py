"""A request of an AMQP client that waits until an authorizer has decided its permission."""

from collections.abc import Callable
from typing import Protocol

from gateway.kernel.errors import GatewayError
from gateway_amqp.channels import Channels
from gateway_amqp.state import State


class RequestOwner(Protocol):
    """The connection, as a postponed request uses it."""

    channels: Channels
    state: State

    def answer_error(self, error: GatewayError, kind: int, number: int, payload: bytes) -> None:
        """Answer a frame that failed."""
        ...


class PostponedRequest:
    """A request that waits for a permission: ``again`` repeats it, the rest is its last frame."""

    __slots__ = ("_again", "_kind", "_number", "_payload")

    def __init__(self, again: Callable[[], None], kind: int, number: int, payload: bytes) -> None:
        self._again = again
        self._kind = kind
        self._number = number
        self._payload = payload

    def repeat(self, owner: RequestOwner) -> None:
        """Repeat the request, unless its connection or channel has ended meanwhile."""
        if owner.state in (State.CLOSING, State.CLOSED):
            return
        if self._number and self._number not in owner.channels.open_by_number:
            return
        try:
            self._again()
        except GatewayError as error:
            owner.answer_error(error, self._kind, self._number, self._payload)
