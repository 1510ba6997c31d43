"""A whole broker as a child process, with a store in memory, for tests."""

import json
import math
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from threading import Lock, Timer
from typing import Any, Final
from urllib.parse import quote

HOST: Final = "127.0.0.1"
LISTENERS: Final = ("amqp", "management", "prometheus", "mqtt", "web_mqtt", "stomp", "web_stomp")
USER: Final = "guest"
_STOP_TIMEOUT_S: Final = 10.0
_START_TIMEOUT_S: Final = 60.0

#: The longest wait of ``pause`` for what another thread lets the broker do.
_PAUSE_TIMEOUT_S: Final = 30.0


class BrokerProcess:
    """A broker as a child process. ``ports`` maps the names of its listeners to their ports.

    With ``has_fake_clock``, ``advance`` advances its clock.
    """

    def __init__(self, directory: Path, settings: Sequence[str] = (), *, has_fake_clock: bool = False) -> None:
        given = ("bind=127.0.0.1", *(f"{name}.port=0" for name in LISTENERS), 'storage.engine="memory"', *settings)
        command = [sys.executable, "-m", "gateway", "run", "--data", str(directory / "data")]
        command += [word for setting in given for word in ("--set", setting)]
        command.append("--control-from-stdin")
        self._has_fake_clock = has_fake_clock
        self._log = directory / "gateway.log"
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._controlling = Lock()
        self._holds = 0
        self._pauses = 0
        self.ports: dict[str, int] = {}
        self._numbers = count(1)
        try:
            self._wait_until_ready()
        except BaseException:  # an interrupt, too, leaves no broker
            self._child.kill()
            self._child.wait()
            raise

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._child.poll() is None

    @property
    def exit_status(self) -> int | None:
        """The exit status of the process; ``None`` while it lives."""
        return self._child.poll()

    def request(self, method: str, *path: str, fields: object = None) -> Any:  # Any: a JSON value
        """Send a request to the management API; return the JSON of the answer, ``None`` if it has none.

        :raises RuntimeError: for an error status, with its reason.
        """
        connection = HTTPConnection(HOST, self.ports["management"], timeout=30)
        login = b64encode(f"{USER}:{USER}".encode()).decode()
        body = None if fields is None else json.dumps(fields)
        url = "/api/" + "/".join(quote(part, safe="") for part in path)
        try:
            connection.request(method, url, body, {"Authorization": f"Basic {login}"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise RuntimeError(f"{method} {url}: {response.status} {content.decode(errors='replace')}")
        return json.loads(content) if content else None

    def new_vhost(self) -> str:
        """Create a virtual host; return its name."""
        name = f"test-{next(self._numbers)}"
        self.request("PUT", "vhosts", name, fields={})
        return name

    def advance(self, seconds: float) -> None:
        """Advance the broker's clock, and wait until what became due is done: expiry, delays, timeouts.

        :raises RuntimeError: if the broker has no fake clock, is paused, or has ended.
        :raises ValueError: if the seconds are negative or not finite.
        """
        if not self._has_fake_clock:
            raise RuntimeError("the broker has no fake clock: override the fixture gateway_fake_clock to return True")
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a clock is advanced by seconds of 0 or more, not {seconds!r}")
        with self._controlling:
            self._control(f"advance {seconds:f}", "advanced")

    def hold_confirms(self) -> None:
        """Keep the store from committing until as many ``release_confirms``: what waits for the disk waits."""
        with self._controlling:
            if self._holds == 0:
                self._control("hold", "held")
            self._holds += 1

    def release_confirms(self) -> None:
        """Let the store commit again, if nothing else holds it."""
        with self._controlling:
            if self._holds == 1:
                self._control("release", "released")
            self._holds -= 1

    def _control(self, line: str, answer: str) -> None:
        """Send a line that the broker follows, and wait for its answer, see ``gateway.node.control_lines``.

        The caller has the lock ``_controlling``.
        """
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        if self._pauses:
            raise RuntimeError("the broker is paused")
        try:
            self._child.stdin.write(f"{line}\n".encode())
            self._child.stdin.flush()
        except (OSError, ValueError):  # the pipe has no reader, or is closed
            raise self._has_ended() from None
        for received in self._child.stdout:
            text = received.decode(errors="replace").rstrip("\n")
            if text == answer:
                return
            if text == f"refused: {line}":
                raise RuntimeError(f"the broker refuses {line!r}: it needs the store in memory")
        raise self._has_ended()

    def _has_ended(self) -> RuntimeError:
        return RuntimeError(f"the broker has ended:\n{self._log.read_text(errors='replace')}")

    def pause(self) -> None:
        """Stop the process until as many ``resume``: no client gets an answer, as on a machine that is too busy.

        An ``advance`` of another thread ends first.

        :raises RuntimeError: if it takes longer than 30 seconds: a stopped broker would never answer it.
        """
        if not self._controlling.acquire(timeout=_PAUSE_TIMEOUT_S):
            raise RuntimeError(f"the broker is not paused: another thread controls it for {_PAUSE_TIMEOUT_S:g} s")
        try:
            if self._pauses == 0:
                self._child.send_signal(signal.SIGSTOP)
            self._pauses += 1
        finally:
            self._controlling.release()

    def resume(self) -> None:
        """Let the process go on, if nothing else pauses it."""
        with self._controlling:
            if self._pauses == 1:
                self._child.send_signal(signal.SIGCONT)
            self._pauses -= 1

    def stop(self) -> None:
        """End the process, also a paused one."""
        if self._pauses:
            self._child.send_signal(signal.SIGCONT)
        self._child.terminate()
        try:
            self._child.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was written to a broker that had ended
                    pipe.close()

    def _wait_until_ready(self) -> None:
        """Read the listeners, which the broker prints in one write once it serves clients; other lines follow them.

        :raises RuntimeError: if it ends, or takes longer than a minute.
        """
        assert self._child.stdout is not None
        limit = Timer(_START_TIMEOUT_S, self._child.kill)
        limit.daemon = True
        limit.start()
        try:
            for line in self._child.stdout:
                words = line.decode(errors="replace").split()
                port = words[-1].rpartition(":")[2] if len(words) == 2 else ""
                if port.isdigit():
                    self.ports[words[0]] = int(port)
                elif self.ports:
                    return
        finally:
            limit.cancel()
        raise RuntimeError(f"the broker does not start:\n{self._log.read_text(errors='replace')}")
