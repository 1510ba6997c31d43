"""A reactor for one process in the virtual world: Twisted's interfaces of time, threads and listening ports."""

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.address import IPv4Address
from twisted.internet.error import AlreadyCalled, AlreadyCancelled

from gateway.simulation.disk import ProcessKilled
from gateway.simulation.world.world import World, WorldEvent

#: The longest time a call from another thread takes to reach the reactor, in seconds.
_LONGEST_WAKE_UP_S: Final = 0.0005


class DelayedCall:
    """A call that Twisted's users can cancel and move."""

    def __init__(self, reactor: "SimulatedReactor", delay_s: float, call: Callable[[], None]) -> None:
        self._reactor = reactor
        self._call = call
        self._is_called = self._is_cancelled = False
        self._event: WorldEvent = reactor.world.schedule(delay_s, self._run)

    def _run(self) -> None:
        self._is_called = True
        self._reactor.run(self._call)

    def active(self) -> bool:
        """Return whether the call is still to be made."""
        return not (self._is_called or self._is_cancelled)

    def getTime(self) -> float:  # noqa: N802 - Twisted's name
        """Return when the call is due, in seconds."""
        return self._event.at_s

    def cancel(self) -> None:
        """Cancel the call. :raises AlreadyCalled: after it was made. :raises AlreadyCancelled: the second time."""
        self._require_active()
        self._is_cancelled = True
        self._event.cancel()

    def reset(self, seconds: float) -> None:
        """Let the call be made this long from now."""
        self._require_active()
        self._event.cancel()
        self._event = self._reactor.world.schedule(seconds, self._run)

    def delay(self, seconds: float) -> None:
        """Move the call by some seconds."""
        self.reset(self._event.at_s + seconds - self._reactor.world.now_s)

    def _require_active(self) -> None:
        if self._is_cancelled:
            raise AlreadyCancelled
        if self._is_called:
            raise AlreadyCalled


class ListeningPort:
    """A bound port. Connections wait in ``backlog`` while it does not read."""

    def __init__(self, reactor: "SimulatedReactor", port: int, factory: Any) -> None:
        self.factory = factory
        self.is_reading = True
        self.backlog: list[Callable[[], None]] = []
        self._reactor = reactor
        self._port = port

    def getHost(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        """Return the address."""
        return IPv4Address("TCP", "127.0.0.1", self._port)

    def stopReading(self) -> None:  # noqa: N802 - Twisted's name
        """Let new connections wait."""
        self.is_reading = False

    def startReading(self) -> None:  # noqa: N802 - Twisted's name
        """Accept the connections that wait, and new ones."""
        self.is_reading = True
        backlog, self.backlog = self.backlog, []
        for accept in backlog:
            self._reactor.world.schedule(0, accept)

    def stopListening(self) -> None:  # noqa: N802 - Twisted's name
        """Close the port."""
        self._reactor.ports.pop(self._port, None)


class SimulatedReactor:
    """The reactor of one process. After ``kill`` nothing that was scheduled in it happens.

    ``on_error`` is called with an exception that a call raised: a real reactor would log its traceback.
    """

    def __init__(self, world: World, on_error: Callable[[BaseException], None]) -> None:
        self.world = world
        self.ports: dict[int, ListeningPort] = {}
        self.is_alive = True
        self._on_error = on_error
        self._next_port = 1024

    def run(self, call: Callable[..., Any], *args: Any) -> None:
        """Make a call in this process."""
        if not self.is_alive:
            return
        try:
            call(*args)
        except ProcessKilled:  # within a call that used the disk
            self.kill()
        except (Exception, SystemExit) as error:  # a plugin may call sys.exit
            self._on_error(error)

    def kill(self) -> None:
        """End the process at once."""
        self.is_alive = False
        self.ports.clear()

    # Twisted's interfaces

    def seconds(self) -> float:
        """Return the time in seconds."""
        return self.world.read_clock()

    def callLater(self, delay_s: float, call: Callable[..., Any], *args: Any, **named: Any) -> DelayedCall:
        """Make a call after a delay."""
        return DelayedCall(self, delay_s, lambda: call(*args, **named))

    def callFromThread(self, call: Callable[..., Any], *args: Any) -> None:
        """Make a call on the reactor's thread soon; calls of one thread keep their order."""
        self.world.schedule(_LONGEST_WAKE_UP_S, lambda: self.run(call, *args))

    def callWhenRunning(self, call: Callable[..., Any], *args: Any) -> None:
        """Make a call now: the reactor runs."""
        call(*args)

    def addSystemEventTrigger(self, *trigger: Any, **named: Any) -> None:  # noqa: N802 - Twisted's name
        """Ignore a trigger: this reactor has no events of its system."""

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> ListeningPort:  # noqa: N802 - Twisted's name
        """Bind a port; 0 takes a free one."""
        if not port:
            port = self._next_port
            self._next_port += 1
        self.ports[port] = ListeningPort(self, port, factory)
        return self.ports[port]
