"""A broker as a context manager: ``with Gateway() as broker``."""

import atexit
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final

from gateway.testing.broker_handle import TestBroker
from gateway.testing.broker_process import BrokerProcess

_processes: Final[dict[tuple[tuple[str, ...], bool], BrokerProcess]] = {}
_lock: Final = Lock()


class Gateway:
    """A broker within a block, with AMQP, MQTT and STOMP on free ports and a virtual host of its own.

    ``settings`` are as for ``gateway run --set``: ``SECTION.KEY=VALUE``. With ``fake_clock`` the block moves the
    broker's time. The first broker with the same settings takes about two seconds, because its process starts; the
    others share the process. It ends with the program.

    Blocks with the same settings that are open at the same time share the broker: ``advance``, ``paused``,
    ``delayed_confirms`` and ``full_disk`` of one affect the clients of all. Other settings, one more is enough, are a
    broker of their own.
    """

    def __init__(self, settings: Sequence[str] = (), *, fake_clock: bool = False) -> None:
        self._key = tuple(settings), fake_clock
        self._broker: TestBroker | None = None

    def __enter__(self) -> TestBroker:
        """Return the broker. :raises RuntimeError: if it does not start, with its log."""
        with _lock:
            process = _processes.get(self._key)
            if process is None or not process.is_running:  # a broker that a test killed is replaced
                process = _started(self._key)
            self._broker = TestBroker(process, process.new_vhost())
        return self._broker

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Delete the virtual host with everything in it; its clients are disconnected."""
        assert self._broker is not None
        self._broker.request("DELETE", "vhosts", self._broker.vhost)


def _started(key: tuple[tuple[str, ...], bool]) -> BrokerProcess:
    settings, has_fake_clock = key
    directory = tempfile.TemporaryDirectory(prefix="gateway-")
    process = BrokerProcess(Path(directory.name), settings, has_fake_clock=has_fake_clock)
    _processes[key] = process

    def end() -> None:
        process.stop()
        directory.cleanup()

    atexit.register(end)
    return process
