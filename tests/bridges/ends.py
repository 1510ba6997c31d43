"""Ends of a transfer for tests: they record what happens, and a test decides about confirms."""

from collections.abc import Callable

from pika.spec import BasicProperties

from gateway.bridges.parcel import Parcel


class FakeSource:
    """A source whose messages a test sends."""

    def __init__(self) -> None:
        self.receive: Callable[[Parcel], None] = lambda parcel: None
        self.accepted: list[int] = []
        self.requeued: list[int] = []
        self.is_started = self.is_paused = self.is_closed = False

    def start(self, receive: Callable[[Parcel], None]) -> None:
        self.receive, self.is_started = receive, True

    def send(self, *tags: int) -> None:
        for tag in tags:
            self.receive(Parcel(tag, "x", "k", BasicProperties(), b"%d" % tag))

    def accept(self, tag: int) -> None:
        self.accepted.append(tag)

    def requeue(self, tag: int) -> None:
        self.requeued.append(tag)

    def pause(self, is_paused: bool) -> None:
        self.is_paused = is_paused

    def close(self) -> None:
        self.is_closed = True


class FakeDestination:
    """A destination that confirms when a test says so."""

    def __init__(self) -> None:
        self.on_ready: Callable[[], None] = lambda: None
        self.published: list[Parcel] = []
        self.unanswered: dict[int, Callable[[bool], None]] = {}
        self.is_blocked = False
        self.is_closed = False

    def publish(self, parcel: Parcel, done: Callable[[bool], None]) -> None:
        self.published.append(parcel)
        self.unanswered[parcel.tag] = done

    @property
    def tags(self) -> list[int]:
        return [parcel.tag for parcel in self.published]

    def answer(self, tag: int, is_taken: bool = True) -> None:
        self.unanswered.pop(tag)(is_taken)

    def unblock(self) -> None:
        self.is_blocked = False
        self.on_ready()

    def close(self) -> None:
        self.is_closed = True
