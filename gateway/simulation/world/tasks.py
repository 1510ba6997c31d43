"""Coroutines in virtual time: a client's program waits for answers without threads or an event loop of its own."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from gateway.simulation.world.world import World

T = TypeVar("T")


class Promise(Generic[T]):
    """A value that is known later. ``await`` returns it, or raises the exception that took its place."""

    __slots__ = ("_error", "_is_done", "_value", "_waiting")

    def __init__(self) -> None:
        self._is_done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._waiting: list[Callable[[], None]] = []

    @property
    def is_done(self) -> bool:
        """Whether the value, or an exception, is known."""
        return self._is_done

    @property
    def is_fulfilled(self) -> bool:
        """Whether the value is known."""
        return self._is_done and self._error is None

    def fulfil(self, value: T) -> None:
        """Set the value; later ones are ignored."""
        self._settle(value, None)

    def fail(self, error: Exception) -> None:
        """Set an exception in place of the value."""
        self._settle(None, error)

    def when_done(self, call: Callable[[], None]) -> None:
        """Make a call once the value is known."""
        if self._is_done:
            call()
        else:
            self._waiting.append(call)

    def _settle(self, value: T | None, error: Exception | None) -> None:
        if self._is_done:
            return
        self._is_done, self._value, self._error = True, value, error
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def __await__(self) -> "Generator[Promise[T], None, T]":
        if not self._is_done:
            yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # a fulfilled promise has its value, which may be None


class ProgramTask:
    """A running coroutine. ``on_error`` is called with an exception that ended it."""

    def __init__(
        self,
        world: World,
        name: str,
        work: Coroutine[Any, Any, None],
        on_error: "Callable[[ProgramTask, Exception], None]",
    ) -> None:
        self.name = name
        self.is_over = False
        self._on_error = on_error
        self._world = world
        self._work = work
        world.schedule(0, self._step)

    def stop(self) -> None:
        """End the coroutine where it waits."""
        if not self.is_over:
            self.is_over = True
            self._work.close()

    def _step(self) -> None:
        if self.is_over:
            return
        try:
            promise = self._work.send(None)
        except StopIteration:
            self.is_over = True
        except Exception as error:
            self.is_over = True
            self._on_error(self, error)
        else:
            promise.when_done(self._step_soon)

    def _step_soon(self) -> None:
        self._world.schedule(0, self._step)


def sleep(world: World, seconds: float) -> Promise[None]:
    """Return a promise that is fulfilled after some virtual time."""
    promise: Promise[None] = Promise()
    world.schedule(seconds, lambda: promise.fulfil(None))
    return promise


class Timeout(Exception):
    """An awaited answer did not come in time."""


def within(world: World, promise: Promise[T], seconds: float, what: str) -> Promise[T]:
    """Return the promise; it fails with ``Timeout`` if it takes longer."""
    world.schedule(seconds, lambda: promise.fail(Timeout(f"{what}: no answer within {seconds:g} s")))
    return promise
