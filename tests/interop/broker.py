"""The broker under test: a gateway started for the session, or any broker named by a URL."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

PROJECT: Final = Path(__file__).resolve().parents[2]

#: Set to ``amqp://user:password@host:port/vhost`` to run the suite against a broker that is already there.
BROKER_URL: Final = os.environ.get("GATEWAY_TEST_AMQP_URL")

START_TIMEOUT_S: Final = 20.0
STOP_TIMEOUT_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Broker:
    """Where a broker listens and who may log in. ``pid`` is 0 for one that was there already."""

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    vhost: str = "/"
    pid: int = 0

    @classmethod
    def from_url(cls, url: str) -> "Broker":
        """Read ``amqp://user:password@host:port/vhost``; an absent vhost is ``/``."""
        parts = urlsplit(url)
        return cls(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 5672,
            user=unquote(parts.username or "guest"),
            password=unquote(parts.password or "guest"),
            vhost=unquote(parts.path[1:]) or "/",
        )

    @property
    def url(self) -> str:
        """The same broker as a URL, with the vhost percent-encoded (``/`` is ``%2F``)."""
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"amqp://{credentials}@{self.host}:{self.port}/{quote(self.vhost, safe='')}"


@contextmanager
def running_gateway(directory: Path, *overrides: str) -> Iterator[Broker]:
    """Run ``gateway run`` as a child process, with further settings; stopping it by SIGTERM must succeed."""
    broker = Broker("127.0.0.1", _free_port())
    log = directory / "gateway.log"
    settings = ["--set", f"bind={broker.host}", "--set", f"amqp.port={broker.port}", "--set", "management.port=0"]
    settings += [word for override in overrides for word in ("--set", override)]
    command = [sys.executable, "-m", "gateway", "run", "--data", str(directory / "data"), *settings]
    with log.open("wb") as output:
        child = subprocess.Popen(command, cwd=PROJECT, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_listening(broker, child, log)
        yield replace(broker, pid=child.pid)
    finally:
        exit_code = _terminate(child)
    assert exit_code == 0, f"the gateway stopped with exit code {exit_code}:\n{_tail(log)}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_listening(broker: Broker, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while child.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection((broker.host, broker.port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    state = "does not listen" if child.poll() is None else f"exited with code {child.returncode}"
    raise RuntimeError(f"the gateway {state}:\n{_tail(log)}")


def _terminate(child: subprocess.Popen[bytes]) -> int:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        return child.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait(STOP_TIMEOUT_S)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-30:])
