"""A gateway as a child process: started, asked, killed or stopped, and started again on the same data."""

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.interop.broker import PROJECT, Broker

HOST: Final = "127.0.0.1"

#: What listens unless told not to, without a certificate and with one.
LISTENERS: Final = ("amqp", "management", "mqtt", "web_mqtt", "stomp", "web_stomp")
TLS_LISTENERS: Final = ("amqps", "mqtts", "stomps")

START_TIMEOUT_S: Final = 20.0
STOP_TIMEOUT_S: Final = 10.0


class Gateway:
    """One data directory, and the child process that serves it while there is one.

    Each start takes free ports, read from what the gateway prints. The log of all starts is in one file. ``options``
    are further words of its command line, ``environment`` takes the place of the variables of the tests.
    """

    def __init__(self, directory: Path, *settings: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.data = directory / "data"
        self.settings = settings
        self.options: tuple[str, ...] = ()
        self.environment: Mapping[str, str] | None = None
        self.addresses: dict[str, tuple[str, int]] = {}
        self._output = directory / "output.txt"
        self._log = directory / "gateway.log"
        self._child: subprocess.Popen[bytes] | None = None

    # Starting and ending

    def start(self, *settings: str) -> "Gateway":
        """Start it and wait until it listens; ``settings`` hold for this start alone."""
        assert self._child is None, "it runs already"
        self._spawn(settings)
        return self.wait_until_ready()

    def wait_until_ready(self) -> "Gateway":
        """Wait until it prints what listens where."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while "is running" not in self.output or not self.output.endswith("\n"):
            assert self.child.poll() is None, f"exited with code {self.child.returncode}:\n{self.log}"
            assert time.monotonic() < deadline, f"does not start:\n{self.log}"
            time.sleep(0.01)
        self.addresses = dict(_addresses(self.output))
        return self

    def run_to_end(self, *settings: str) -> int:
        """Start it expecting that it ends by itself; return the exit code."""
        self._spawn(settings)
        return self._wait(START_TIMEOUT_S)

    def kill(self) -> None:
        """End it as a power cut ends a process: SIGKILL."""
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
        """Make sure that no process is left."""
        if self._child is not None:
            self.kill()

    def _spawn(self, settings: tuple[str, ...]) -> None:
        given = (*self.settings, *settings)
        has_tls = any(setting.startswith("tls.certificate=") for setting in given)
        listeners = (*LISTENERS, *(TLS_LISTENERS if has_tls else ()))
        overrides = ("bind=127.0.0.1", *(f"{listener}.port=0" for listener in listeners), *given)
        options = [word for override in overrides for word in ("--set", override)]
        command = [sys.executable, "-m", "gateway", "run", "--data", str(self.data), *self.options, *options]
        with self._output.open("wb") as output, self._log.open("ab") as log:
            self._child = subprocess.Popen(
                command, cwd=PROJECT, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=log
            )

    def _wait(self, timeout_s: float) -> int:
        child, self._child = self.child, None
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise AssertionError(f"it took more than {timeout_s} s to end:\n{self.log}") from None

    # What is known of it

    @property
    def child(self) -> "subprocess.Popen[bytes]":
        """The running process."""
        assert self._child is not None, "it does not run"
        return self._child

    @property
    def broker(self) -> Broker:
        """Where its AMQP listener is, as the default user."""
        return Broker(*self.addresses["amqp"], pid=self.child.pid)

    @property
    def output(self) -> str:
        """What the present run printed on its standard output."""
        return self._output.read_text(errors="replace")

    @property
    def log(self) -> str:
        """What all runs wrote on their standard error streams."""
        return self._log.read_text(errors="replace")

    def log_has(self, text: str, timeout_s: float = 10.0) -> str:
        """Wait for a line of the log that holds ``text``, and return it."""
        deadline = time.monotonic() + timeout_s
        while True:
            for line in self.log.splitlines():
                if text in line:
                    return line
            assert time.monotonic() < deadline, f"no line with {text!r} in the log:\n{self.log}"
            time.sleep(0.02)

    def resident_memory(self) -> int:
        """The bytes of memory that it occupies (RSS)."""
        return self._status("VmRSS")

    def private_memory(self) -> int:
        """The bytes of memory that it holds for itself, without pages of files."""
        return self._status("RssAnon")

    def limit_files(self, size: int | None) -> None:
        """Let no file of it grow beyond ``size``, as a full disk would; ``None`` makes room again."""
        _, hard = resource.prlimit(self.child.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.child.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"the system does not tell {name}")


@contextmanager
def gateway_in(directory: Path, *settings: str) -> Iterator[Gateway]:
    """Run a gateway for as long as the block lasts. It may end in the block, and start again."""
    gateway = Gateway(directory, *settings)
    try:
        yield gateway.start()
    finally:
        gateway.end()


@contextmanager
def running_gateway(directory: Path, *settings: str) -> Iterator[Broker]:
    """Run a gateway for as long as the block lasts; stopping it by SIGTERM must succeed."""
    with gateway_in(directory, *settings) as gateway:
        yield gateway.broker
        exit_code = gateway.stop()
        assert exit_code == 0, f"the gateway stopped with exit code {exit_code}:\n{gateway.log}"


def _addresses(output: str) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield what listens where, from lines such as ``amqp   127.0.0.1:5672``."""
    for line in output.splitlines():
        words = line.split()
        if line.startswith("  ") and len(words) == 2 and words[1].startswith(f"{HOST}:"):
            yield words[0], (HOST, int(words[1].rpartition(":")[2]))
