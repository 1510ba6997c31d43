"""A gateway under mutated sessions, with a probe client beside them."""

import os
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.error import HTTPError

from tests.fuzz import http_seeds
from tests.fuzz.mutating import mutated
from tests.fuzz.ports import Port
from tests.fuzz.probe import ProbeProcess, Wait
from tests.fuzz.probe_clients import Address
from tests.fuzz.sandbox import PASSWORD, USER, VHOST
from tests.management_client import get, put, request
from tests.running import Gateway

#: Settings of the fuzzed gateway: failed logins are not delayed, so that sessions proceed quickly.
SETTINGS: Final = ("login.max_delay_ms=0", "log.lines_per_s=5")

#: Connections left open and idle.
_MOST_LINGERING: Final = 50

#: Sessions between two checks of the log and the process.
_CHECK_EVERY: Final = 50

#: Seconds after which everything that the sessions created is deleted.
_RECREATE_EVERY_S: Final = 20.0

#: Text that no input may cause in the log.
_FAULTS: Final = ("Traceback", "internal error", "fault contained")


class GatewayFailure(AssertionError):
    """The mutated sessions caused a failure."""


@dataclass
class Report:
    """The results of one port. Memory is in bytes; ``after_start`` was measured after the first part.

    ``turns`` are the gateway's statistics of its own turns: if these are short, the machine was busy.
    """

    listener: str
    seed: str
    sessions: int = 0
    waits: list[Wait] = field(default_factory=list)
    after_start: int = 0
    at_end: int = 0
    turns: dict[str, Any] = field(default_factory=dict)

    @property
    def longest(self) -> Wait:
        """The longest wait of the probe client."""
        return max(self.waits, key=lambda wait: wait.all_s)

    @property
    def longest_own_s(self) -> float:
        """The longest wait of the probe client without waits for a processor, in seconds."""
        return max(wait.own_s for wait in self.waits)

    def quantile_s(self, share: float) -> float:
        """Return a quantile of the waits, in seconds."""
        return sorted(wait.all_s for wait in self.waits)[int(share * (len(self.waits) - 1))]

    def __str__(self) -> str:
        longest = self.longest
        starved = (
            f"{longest.starved_s * 1000:.0f} of these for a processor; without that {self.longest_own_s * 1000:.0f}"
        )
        waits = f"longest wait {longest.all_s * 1000:.0f} ms ({starved} ms), p99 {self.quantile_s(0.99) * 1000:.0f} ms"
        memory = f"memory {self.after_start >> 20} MiB, then {self.at_end >> 20} MiB"
        cause = self.turns.get("longest_cause") or "many parts"
        turns = f"longest turn {self.turns.get('longest_ms', 0):.0f} ms ({cause})"
        return f"{self.listener:<11}{self.sessions:>9} sessions   {waits}   {turns}   {memory}   seed {self.seed}"


def lower_priority(niceness: int) -> None:
    """Use only the processor time that others leave: Linux divides it by session first, then by niceness."""
    os.nice(niceness)
    with suppress(OSError):  # already a session leader, or no autogroups
        os.setsid()
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(min(niceness, 19)))


def create_account(gateway: Gateway) -> None:
    """Create the user and the virtual host of the mutated sessions.

    The user logs in once, so that the gateway caches the password and later logins take no time.
    """
    put(gateway, f"users/{USER}", {"password": PASSWORD, "tags": "policymaker,monitoring"})
    recreate_vhost(gateway)
    assert b" 200 " in answer_to(gateway.addresses["management"], http_seeds.request("GET", "/api/whoami"))


def recreate_vhost(gateway: Gateway) -> None:
    """Delete everything that the mutated sessions created."""
    with suppress(HTTPError):
        request(gateway, "DELETE", f"vhosts/{VHOST}")
    put(gateway, f"vhosts/{VHOST}", {})
    put(gateway, f"permissions/{VHOST}/{USER}", {"configure": ".*", "write": ".*", "read": ".*"})


def fuzz(gateway: Gateway, port: Port, seconds: float, seed: str, first: int = 0, niceness: int = 0) -> Report:
    """Send mutated sessions for this time; return the report. :raises GatewayFailure: if the gateway fails.

    With ``niceness`` the sessions use only the processor time that the gateway and the probe client leave.
    """
    create_account(gateway)
    report = Report(port.listener, seed)
    probe = ProbeProcess(port.listener, gateway.addresses[port.listener], gateway.child.pid)
    if niceness:
        lower_priority(niceness)
    started, emptied = time.monotonic(), time.monotonic()
    fuzzer = _Fuzzer(gateway, port, seed)
    try:
        while (now := time.monotonic()) < started + seconds:
            fuzzer.send(first + report.sessions)
            report.sessions += 1
            if report.sessions % _CHECK_EVERY == 0:
                _check(gateway, report, first, probe)
            if now > emptied + _RECREATE_EVERY_S:
                emptied = now
                recreate_vhost(gateway)
            if not report.after_start and now > started + min(60.0, seconds / 3):
                report.after_start = _memory(gateway, fuzzer)
        _check(gateway, report, first, probe)
    finally:
        report.waits = probe.stop()
    report.at_end = _memory(gateway, fuzzer)
    report.turns = get(gateway, "nodes")[0].get("turns", {})
    _check(gateway, report, first)
    return report


def answer_to(address: Address, data: bytes) -> bytes:
    """Send data on one connection; return the answers until the peer is silent or closes the connection."""
    answer = b""
    with socket.create_connection(address, timeout=5) as peer, suppress(OSError):
        peer.sendall(data)
        while piece := peer.recv(65_536):
            answer += piece
            peer.settimeout(0.5)
    return answer


def _memory(gateway: Gateway, fuzzer: "_Fuzzer") -> int:
    """Return the gateway's memory after everything of the mutated sessions is deleted."""
    fuzzer.close_all()
    recreate_vhost(gateway)
    smallest = gateway.resident_memory()
    for _ in range(5):
        time.sleep(0.2)  # memory is returned in the background; the smallest figure counts
        smallest = min(smallest, gateway.resident_memory())
    return smallest


def _check(gateway: Gateway, report: Report, first: int, probe: ProbeProcess | None = None) -> None:
    """Check the process, the log and the probe client."""
    last = first + report.sessions
    where = f"{report.listener}, seed {report.seed}, sessions {max(first, last - 2 * _CHECK_EVERY)} to {last}"
    if (code := gateway.child.poll()) is not None:
        raise GatewayFailure(f"{where}: the process ended with code {code}\n{gateway.log[-4000:]}")
    if any(fault in gateway.log for fault in _FAULTS):
        at = min(gateway.log.index(fault) for fault in _FAULTS if fault in gateway.log)
        raise GatewayFailure(f"{where}: a fault in the log\n{gateway.log[max(0, at - 500) : at + 4000]}")
    if probe is not None and (failure := probe.failure) is not None:
        raise GatewayFailure(f"{where}: the probe client failed\n{failure}\n{gateway.log[-2000:]}")


class _Fuzzer:
    """Sends mutated sessions, one connection each, and ends them in every possible way."""

    def __init__(self, gateway: Gateway, port: Port, seed: str) -> None:
        self._gateway = gateway
        self._port = port
        self._seed = seed
        self._lingering: deque[socket.socket] = deque()

    def send(self, number: int) -> None:
        """Send the session of this number."""
        random = Random(f"end of {self._seed}:{number}")
        peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        peer.settimeout(2.0)
        with suppress(OSError):  # the gateway may close the connection or stop reading at any time
            peer.connect(self._gateway.addresses[self._port.listener])
            for piece in mutated((*self._port.sessions, *self._port.refused), self._seed, number):
                peer.sendall(piece)
                if random.random() < 0.2:
                    time.sleep(0.001)  # the rest arrives in another read
            if random.random() < 0.5:
                peer.settimeout(0.05)
                peer.recv(65_536)
        self._end(peer, random.randrange(5))

    def _end(self, peer: socket.socket, way: int) -> None:
        with suppress(OSError):
            if way == 0:  # the rest of the session never arrives
                self._lingering.append(peer)
                if len(self._lingering) > _MOST_LINGERING:
                    self._lingering.popleft().close()
                return
            if way == 1:  # a reset
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif way == 2:  # half closed
                peer.shutdown(socket.SHUT_WR)
                peer.settimeout(0.05)
                peer.recv(65_536)
        peer.close()

    def close_all(self) -> None:
        """Close all open connections."""
        for peer in self._lingering:
            peer.close()
        self._lingering.clear()


def replay(gateway: Gateway, port: Port, seed: str, numbers: Iterable[int]) -> None:
    """Send these sessions again. :raises GatewayFailure: if the gateway fails."""
    create_account(gateway)
    report = Report(port.listener, seed)
    probe = ProbeProcess(port.listener, gateway.addresses[port.listener], gateway.child.pid)
    fuzzer = _Fuzzer(gateway, port, seed)
    try:
        for number in numbers:
            fuzzer.send(number)
            report.sessions = number + 1
            time.sleep(0.05)  # a failure of the gateway shows before the next session
            _check(gateway, report, 0, probe)
    finally:
        probe.stop()
