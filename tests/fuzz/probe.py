"""A probe client in its own process, so that the mutation of sessions takes no time from it.

``python -m tests.fuzz.probe LISTENER HOST PORT PID`` prints ``ready`` after its first answer, makes round trips
until its standard input ends, and prints as JSON the duration of each, and how long both sides waited for a
processor. PID is the gateway's.
"""

import json
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz.ports import PORTS
from tests.fuzz.probe_clients import Address
from tests.interop.broker import PROJECT

#: Seconds between two round trips.
_PAUSE_S: Final = 0.02

#: Longest time until it ends, in seconds.
_END_TIMEOUT_S: Final = 90.0


@dataclass(frozen=True)
class Wait:
    """One round trip in seconds; ``starved_s`` is the part in which the gateway or the client waited for a
    processor.
    """

    all_s: float
    starved_s: float

    @property
    def own_s(self) -> float:
        """The wait without the time spent waiting for a processor."""
        return max(self.all_s - self.starved_s, 0.0)


class ProbeProcess:
    """The process of one probe client, after its first answer."""

    def __init__(self, listener: str, address: Address, pid: int) -> None:
        host, port = address
        command = [sys.executable, "-m", "tests.fuzz.probe", listener, host, str(port), str(pid)]
        self._process = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise AssertionError(f"the probe client did not start:\n{self._process.communicate()[1]}")

    @property
    def failure(self) -> str | None:
        """The reason why it ended early; ``None`` while it runs."""
        if self._process.poll() is None:
            return None
        return self._process.communicate()[1] or f"it ended with code {self._process.returncode}"

    def stop(self) -> list[Wait]:
        """End it; return its waits, none if it failed."""
        if self._process.poll() is not None:
            return []
        try:
            told, _ = self._process.communicate(timeout=_END_TIMEOUT_S)
        finally:
            self._process.kill()
        return [Wait(*found) for found in json.loads(told)] if told else []


def main() -> int:
    """Make round trips until standard input ends."""
    listener, host, port, pid = sys.argv[1:]
    client = PORTS[listener].probe((host, int(port)))
    waits = [(client.round_trip_s(), 0.0)]
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], _PAUSE_S)[0]:
        before_s = _starved_s(pid) + _starved_s("self")
        wait_s = client.round_trip_s()
        waits.append((wait_s, _starved_s(pid) + _starved_s("self") - before_s))
    print(json.dumps(waits), flush=True)
    return 0


def _starved_s(process: str) -> float:
    """Return how long the first thread of a process was ready to run without a processor, in seconds."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except OSError:  # the system does not provide this, or the process ended
        return 0.0


if __name__ == "__main__":
    sys.exit(main())
