"""Control by tests: ``gateway run --control-from-stdin`` follows the lines of its standard input.

``advance SECONDS`` moves the clock, ``hold`` keeps the store in memory from committing, so that confirms wait, and
``release`` lets it commit. Each line is answered by one of standard output. The end of the input ends the broker, so
that none outlives a test that was killed.
"""

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from gateway.config import Settings
from gateway.kernel.journal.store import Store
from gateway.net.clock import ReactorClock
from gateway.node.advanced_clock import AdvancedClock

if TYPE_CHECKING:
    from gateway.node.host import NodeHost
    from gateway.node.store import StoreFiles

#: The answers, each a line.
ADVANCED: Final = "advanced"
HELD: Final = "held"
RELEASED: Final = "released"


class ControlLines:
    """Makes the clock and opens the store of a node, and changes them as the lines say.

    ``stop`` stops the broker; ``answer`` writes a line.
    """

    def __init__(self, lines: BinaryIO, reactor: Any, stop: Callable[[], None], answer: Callable[[str], None]) -> None:
        self._lines = lines
        self._reactor = reactor  # Any: Twisted's interfaces are not types
        self._stop = stop
        self._answer = answer
        self._clock: AdvancedClock | None = None
        self._store: Store | None = None

    def host(self) -> "NodeHost":
        """Return the machine of a node that is controlled."""
        from gateway.node.host import NodeHost  # imports Twisted's reactor machinery: after the installation

        return NodeHost(make_clock=self._make_clock, open_store=self._open_store)

    def follow(self) -> None:
        """Follow the lines from now on."""
        Thread(target=self._read, name="control from stdin", daemon=True).start()

    def _make_clock(self, reactor: Any, touch: Callable[[], None]) -> ReactorClock:
        self._clock = AdvancedClock(reactor, touch)
        return self._clock

    def _open_store(self, settings: Settings, reactor: Any, files: "StoreFiles") -> Store:
        from gateway.node.store import open_store

        self._store = open_store(settings, reactor, files)
        return self._store

    def _read(self) -> None:
        for line in self._lines:
            self._reactor.callFromThread(self._obey, line.decode(errors="replace").split())
        self._reactor.callFromThread(self._stop)

    def _obey(self, words: list[str]) -> None:
        from gateway_memory import MemoryStore

        match words:
            case ["advance", seconds] if self._clock is not None and _is_number(seconds):
                self._clock.advance(float(seconds), lambda: self._answer(ADVANCED))
            case ["hold"] if isinstance(self._store, MemoryStore):
                self._store.hold()
                self._answer(HELD)
            case ["release"] if isinstance(self._store, MemoryStore):
                self._store.release()
                self._answer(RELEASED)
            case _:
                self._answer(f"refused: {' '.join(words)}")


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False
