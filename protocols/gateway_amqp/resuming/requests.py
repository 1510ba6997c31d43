"""The requests of one channel that the leader has not answered, and what their answers change."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pamqp.base import Frame

#: So many requests without an answer are kept that ask for none; then the oldest one counts as done.
_MOST_SILENT = 1000


@dataclass(slots=True)
class UnansweredRequest:
    """A request. ``answers`` are the methods that answer it, none if it asked for none (``nowait``).

    ``place`` is its place among the publishes of the channel. ``is_own`` means that the client does not wait for it.
    """

    method: Frame
    answers: tuple[bytes, ...]
    place: int = 0
    is_own: bool = False


class UnansweredRequests:
    """Owns the unanswered requests of one channel, in order. ``learn`` is called with each that was carried out, and
    its answer; a request without answer was carried out if a later one was answered.
    """

    __slots__ = ("_learn", "_waiting")

    def __init__(self, learn: Callable[[UnansweredRequest, bytes], None]) -> None:
        self._waiting: deque[UnansweredRequest] = deque()
        self._learn = learn

    def __len__(self) -> int:
        """Return the number of unanswered requests."""
        return len(self._waiting)

    def waiting(self) -> list[UnansweredRequest]:
        """Return the unanswered requests of the client."""
        return [request for request in self._waiting if not request.is_own]

    def add(self, request: UnansweredRequest) -> None:
        """Add a request that was just passed to the leader."""
        self._waiting.append(request)
        if len(self._waiting) > _MOST_SILENT and not self._waiting[0].answers:
            self._learn(self._waiting.popleft(), b"")

    def begin_again(self, own: list[UnansweredRequest]) -> None:
        """Put requests for another leader before those of the client."""
        self._waiting = deque([*own, *self.waiting()])

    def answered(self, index: bytes, payload: bytes) -> UnansweredRequest | None:
        """Remove the oldest request with this answer, and those before it; ``None`` if there is none."""
        if not any(index in request.answers for request in self._waiting):
            return None
        while True:
            request = self._waiting.popleft()
            is_it = index in request.answers
            self._learn(request, payload if is_it else b"")
            if is_it:
                return request

    def passed(self, place: int) -> None:
        """Note that a publish at this place was confirmed: silent requests before it were carried out."""
        waiting = self._waiting
        while waiting and not waiting[0].answers and waiting[0].place < place:
            self._learn(waiting.popleft(), b"")
