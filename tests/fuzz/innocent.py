"""An innocent client in a process of its own, so that what mutates sessions takes no time from it.

``python -m tests.fuzz.innocent LISTENER HOST PORT`` says ``ready`` once it had an answer, makes round trips until its
standard input ends, and prints how long each took as JSON, in seconds.
"""

import json
import select
import subprocess
import sys
from typing import Final

from tests.fuzz.healthy import Address
from tests.fuzz.ports import PORTS
from tests.interop.broker import PROJECT

#: Seconds between two round trips.
_PAUSE_S: Final = 0.02

#: How long it may take to end, in seconds.
_END_TIMEOUT_S: Final = 90.0


class Innocent:
    """The process of one innocent client, from its first answer on."""

    def __init__(self, listener: str, address: Address) -> None:
        host, port = address
        command = [sys.executable, "-m", "tests.fuzz.innocent", listener, host, str(port)]
        self._process = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise AssertionError(f"the innocent client did not start:\n{self._process.communicate()[1]}")

    @property
    def failure(self) -> str | None:
        """Why it ended before it was told to; ``None`` while it runs."""
        if self._process.poll() is None:
            return None
        return self._process.communicate()[1] or f"it ended with code {self._process.returncode}"

    def stop(self) -> list[float]:
        """End it; return how long each round trip took, in seconds, none when it failed."""
        if self._process.poll() is not None:
            return []
        try:
            told, _ = self._process.communicate(timeout=_END_TIMEOUT_S)
        finally:
            self._process.kill()
        return list(json.loads(told)) if told else []


def main() -> int:
    """Make round trips until standard input ends."""
    listener, host, port = sys.argv[1:]
    client = PORTS[listener].healthy((host, int(port)))
    waits_s = [client.round_trip_s()]
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], _PAUSE_S)[0]:
        waits_s.append(client.round_trip_s())
    print(json.dumps(waits_s), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
