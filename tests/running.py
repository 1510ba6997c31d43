"""A gateway as a child process, which can be stopped or killed and restarted on the same data."""

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.interop.broker import PROJECT, Broker
from tests.prepared_process import Child, prepared_process
from tests.waiting import wait_until

HOST: Final = "127.0.0.1"

#: The listeners that are enabled by default, without a certificate and with one.
LISTENERS: Final = ("amqp", "management", "prometheus", "mqtt", "web_mqtt", "stomp", "web_stomp")
TLS_LISTENERS: Final = ("amqps", "mqtts", "stomps", "management_tls", "prometheus_tls")

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0


class Gateway:
    """One data directory, and the child process that serves it.

    Each start uses free ports, read from the gateway's output. The log of all starts is in one file. ``options``
    are added to the command line, ``environment`` replaces the environment of the tests. The process is forked from one
    that has imported the broker, unless the start is ``from_scratch`` or has an environment of its own. ``module``
    is what Python runs then.
    """

    def __init__(self, directory: Path, *settings: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.data = directory / "data"
        self.settings = settings
        self.options: tuple[str, ...] = ()
        self.environment: Mapping[str, str] | None = None
        self.from_scratch = False
        self.module = "gateway"
        self.addresses: dict[str, tuple[str, int]] = {}
        self._output = directory / "output.txt"
        self._log = directory / "gateway.log"
        self._child: Child | None = None

    # Start and stop

    def start(self, *settings: str) -> "Gateway":
        """Start it and wait until it listens; ``settings`` apply only to this start."""
        assert self._child is None, "the gateway is already running"
        self._spawn(settings)
        return self.wait_until_ready()

    def wait_until_ready(self) -> "Gateway":
        """Wait until it prints its listeners."""

        def is_ready() -> bool:
            assert self.child.poll() is None, f"the gateway exited with code {self.child.returncode}:\n{self.log}"
            return "is running" in self.output and self.output.endswith("\n")

        wait_until(is_ready, lambda: f"the gateway does not start:\n{self.log}", timeout_s=START_TIMEOUT_S)
        self.addresses = dict(_addresses(self.output))
        return self

    def run_to_end(self, *settings: str) -> int:
        """Start it and wait for its exit; return the exit code."""
        self._spawn(settings)
        return self._wait(START_TIMEOUT_S)

    def kill(self) -> None:
        """Kill it with SIGKILL, as a power failure would."""
        self.child.kill()
        self._wait(STOP_TIMEOUT_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end; return the exit code."""
        self.child.send_signal(number)
        return self._wait(STOP_TIMEOUT_S)

    def restart(self, *settings: str) -> "Gateway":
        """Kill it and start it again."""
        self.kill()
        return self.start(*settings)

    def end(self) -> None:
        """Ensure that no process is left."""
        if self._child is not None:
            self.kill()

    def _spawn(self, settings: tuple[str, ...]) -> None:
        given = (*self.settings, *settings)
        has_tls = any(setting.startswith("tls.certificate=") for setting in given)
        listeners = (*LISTENERS, *(TLS_LISTENERS if has_tls else ()))
        overrides = ("bind=127.0.0.1", *(f"{listener}.port=0" for listener in listeners), *given)
        options = [word for override in overrides for word in ("--set", override)]
        arguments = ["run", "--data", str(self.data), *self.options, *options]
        with Path(os.devnull).open("rb") as nothing, self._output.open("wb") as output, self._log.open("ab") as log:
            if self.environment is None and not self.from_scratch:
                self._child = prepared_process().start(arguments, nothing, output, log)
            else:
                command = [sys.executable, "-m", self.module, *arguments]
                self._child = subprocess.Popen(
                    command, cwd=PROJECT, env=self.environment, stdin=nothing, stdout=output, stderr=log
                )

    def _wait(self, timeout_s: float) -> int:
        child, self._child = self.child, None
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise AssertionError(f"it took more than {timeout_s} s to end:\n{self.log}") from None

    # State

    @property
    def child(self) -> Child:
        """The running process."""
        assert self._child is not None, "the gateway is not running"
        return self._child

    @property
    def broker(self) -> Broker:
        """The address of its AMQP listener, with the default user."""
        return Broker(*self.addresses["amqp"], pid=self.child.pid)

    @property
    def output(self) -> str:
        """The standard output of the current run."""
        return self._output.read_text(errors="replace")

    @property
    def log(self) -> str:
        """The standard error output of all runs."""
        return self._log.read_text(errors="replace")

    def log_has(self, text: str, timeout_s: float = 10.0) -> str:
        """Wait for a log line that contains ``text``, and return it."""
        return wait_until(
            lambda: next((line for line in self.log.splitlines() if text in line), ""),
            lambda: f"no line with {text!r} in the log:\n{self.log}",
            timeout_s=timeout_s,
        )

    def resident_memory(self) -> int:
        """The resident memory in bytes (RSS)."""
        return self._status("VmRSS")

    def private_memory(self) -> int:
        """The private memory in bytes, without pages of files."""
        return self._status("RssAnon")

    def limit_files(self, size: int | None) -> None:
        """Limit the size of its files to ``size``, as a full disk would; ``None`` removes the limit."""
        _, hard = resource.prlimit(self.child.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.child.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"/proc has no {name}")


@contextmanager
def started(gateway: Gateway) -> Iterator[Gateway]:
    """Run a gateway within the block. It may be stopped and restarted in the block."""
    try:
        yield gateway.start()
    finally:
        gateway.end()


@contextmanager
def stopped_in_order(gateway: Gateway) -> Iterator[Broker]:
    """Run a gateway within the block; stopping it with SIGTERM must succeed."""
    with started(gateway):
        yield gateway.broker
        exit_code = gateway.stop()
        assert exit_code == 0, f"the gateway stopped with exit code {exit_code}:\n{gateway.log}"


def gateway_in(directory: Path, *settings: str) -> AbstractContextManager[Gateway]:
    """Run a gateway on a directory within the block. It may be stopped and restarted in the block."""
    return started(Gateway(directory, *settings))


def running_gateway(directory: Path, *settings: str) -> AbstractContextManager[Broker]:
    """Run a gateway on a directory within the block; stopping it with SIGTERM must succeed."""
    return stopped_in_order(Gateway(directory, *settings))


def connected_when_it_listens(port: int) -> socket.socket:
    """Return a connection to a port on which a starting gateway will listen."""

    def connection() -> socket.socket | None:
        try:
            return socket.create_connection((HOST, port), timeout=20)
        except ConnectionRefusedError:
            return None

    connected = wait_until(connection, "nothing listens", interval_s=0.01)
    assert connected is not None
    return connected


def _addresses(output: str) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the listeners, from lines such as ``amqp 127.0.0.1:5672``."""
    for line in output.splitlines():
        words = line.split()
        if line.startswith("  ") and len(words) == 2 and words[1].startswith(f"{HOST}:"):
            yield words[0], (HOST, int(words[1].rpartition(":")[2]))
