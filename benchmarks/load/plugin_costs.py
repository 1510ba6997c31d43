"""The cost of plugins and traces as clients see it: broker CPU per message over AMQP, beside the plain path.

    python -m benchmarks.load.plugin_costs [rounds]

Transient messages of 100 bytes are published in batches and consumed without acknowledgements, over loopback. Brokers
and cases take turns in each round, so that a slow moment affects all alike; the least CPU time of each case counts.
``x-consistent-hash`` and direct have 100 queues each. *Distinct* keys occur once each, so no route is cached; a fanout
exchange with one queue shows what they cost by themselves.
"""

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.gateway import launch_with
from benchmarks.load.processes import cpu_seconds
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP

BATCH: Final = 20_000
QUEUES: Final = 100
KNOWN_KEYS: Final = 1000
BODY: Final = b"x" * 100

#: An interceptor that does nothing, as the source of a plugin.
IDLE: Final = """
from gateway.api import Interceptor, hookimpl

class Idle(Interceptor):
    def on_publish(self, message, origin):
        return message

@hookimpl
def gateway_interceptors():
    return [Idle()]
"""

#: One that inspects the messages of another exchange only.
ELSEWHERE: Final = IDLE.replace("class Idle(Interceptor):\n", 'class Idle(Interceptor):\n    exchanges = {"other"}\n')

#: One whose answers for headers that repeat are reused.
BY_HEADER: Final = IDLE.replace(
    "class Idle(Interceptor):\n", "class Idle(Interceptor):\n    decides_by_header = True\n"
)

#: The settings of the brokers.
PLAIN: Final[Mapping[str, str]] = {}
TRACED: Final = {"traces.sample": "1"}


@dataclass(frozen=True, slots=True)
class Case:
    """A row: its broker, its exchange type (empty for the default exchange), the row it is compared with, its limit."""

    label: str
    broker: str
    exchange_type: str = ""
    distinct: bool = False
    base: str = ""
    limit: float = 0.0

    @property
    def queues(self) -> int:
        """The number of queues."""
        return QUEUES if self.exchange_type in ("direct", "x-consistent-hash") else 1


CASES: Final = (
    Case("plain", "plain"),
    Case("three idle interceptors", "interceptors", base="plain", limit=1.15),
    Case("three for other exchanges", "elsewhere", base="plain", limit=1.15),
    Case("three that decide by the header", "by_header", base="plain", limit=1.15),
    Case("every message traced", "traced", base="plain", limit=2.0),
    Case("direct, 1,000 keys", "plain", "direct"),
    Case("x-consistent-hash, 1,000 keys", "plain", "x-consistent-hash", base="direct, 1,000 keys", limit=1.3),
    Case("fanout to one queue, distinct keys", "plain", "fanout", distinct=True),
    Case(
        "x-consistent-hash, distinct keys",
        "plain",
        "x-consistent-hash",
        distinct=True,
        base="fanout to one queue, distinct keys",
        limit=1.3,
    ),
)


class Flow:
    """A publisher and a consumer of all queues of one case."""

    def __init__(self, case: Case, number: int, broker: Broker, stack: ExitStack) -> None:
        port = broker.ports[AMQP]
        self._broker = broker
        self._case = case
        self._exchange = f"x{number}" if case.exchange_type else ""
        self._name = f"q{number}-"
        self._numbers = count()
        self._publisher = stack.enter_context(connected(port))
        self._consumer = stack.enter_context(connected(port))
        self._declare(self._publisher)
        for index in range(case.queues):
            names = wire.short_string(f"{self._name}{index}") + wire.short_string(f"c{index:03}")
            self._consumer.call(60, 20, b"\0\0" + names + b"\x02" + wire.table({}))
        self._publisher.socket.sendall(self._batch(1))
        self._size = self._consumer.read_arrival().wire_bytes
        self._socket = self._consumer.quiet_socket()
        self._into = bytearray(1 << 18)

    def cpu_us(self) -> float:
        """Return the CPU time per message of one batch."""
        batch = self._batch(BATCH)
        before_s = cpu_seconds(self._broker.pid)
        sender = threading.Thread(target=self._publisher.socket.sendall, args=(batch,))
        sender.start()
        missing = self._size * BATCH
        while missing:
            got = self._socket.recv_into(self._into)
            if not got:
                raise ConnectionError("the broker closed the connection")
            missing -= got
        sender.join()
        return (cpu_seconds(self._broker.pid) - before_s) / BATCH * 1e6

    def _declare(self, client: Client) -> None:
        case = self._case
        if self._exchange:
            client.declare_exchange(self._exchange, case.exchange_type)
        for index in range(case.queues):
            client.declare_queue(f"{self._name}{index}")
            for key in self._binding_keys(index):
                client.bind_queue(f"{self._name}{index}", self._exchange, key)

    def _binding_keys(self, queue: int) -> Sequence[str]:
        """Return the binding keys of a queue; that of ``x-consistent-hash`` is a weight."""
        if not self._exchange:
            return ()
        return [f"k{number:07}" for number in range(queue, KNOWN_KEYS, QUEUES)] if self._is_direct else ["1"]

    @property
    def _is_direct(self) -> bool:
        return self._case.exchange_type == "direct"

    def _batch(self, messages: int) -> bytes:
        """Return the bytes of publishes, whose keys have one length so that deliveries have one size."""
        if not self._exchange:
            return wire.publish("", f"{self._name}0", BODY, persistent=False) * messages
        keys = self._keys()
        return b"".join([wire.publish(self._exchange, next(keys), BODY, persistent=False) for _ in range(messages)])

    def _keys(self) -> Iterator[str]:
        if self._case.distinct:
            return (f"k{number:07}" for number in self._numbers)
        return (f"k{number % KNOWN_KEYS:07}" for number in count())


def measure(rounds: int) -> dict[str, float]:
    """Return the least CPU time of a message in each case, in microseconds."""
    best = {case.label: float("inf") for case in CASES}
    with ExitStack() as stack:
        brokers = {name: stack.enter_context(_launched(settings)) for name, settings in _settings(stack).items()}
        flows = [Flow(case, number, brokers[case.broker], stack) for number, case in enumerate(CASES)]
        for round_number in range(rounds):
            for case, flow in list(zip(CASES, flows, strict=True))[:: 1 if round_number % 2 else -1]:
                best[case.label] = min(best[case.label], flow.cpu_us())
    return best


def _settings(stack: ExitStack) -> Mapping[str, Mapping[str, str]]:
    """Return the settings of each broker."""
    plugins = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plugins-")))
    brokers = {"plain": PLAIN, "traced": TRACED}
    for broker, source in (("interceptors", IDLE), ("elsewhere", ELSEWHERE), ("by_header", BY_HEADER)):
        names = [f"{number}_{broker}" for number in ("first", "second", "third")]
        for name in names:
            (plugins / f"{name}.py").write_text(source)
        enabled = {f'vhosts."/".plugins.{name}': "{}" for name in names}
        brokers[broker] = {"plugins_dir": str(plugins), **enabled}
    return brokers


@contextmanager
def _launched(settings: Mapping[str, str]) -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix="load-") as directory, launch_with(Path(directory), settings) as broker:
        yield broker


def main(arguments: Sequence[str], say: Callable[[str], None] = print) -> None:
    """Print the times and the ratios."""
    best = measure(int(arguments[0]) if arguments else 15)
    say("| case | µs CPU | beside | ratio | limit |")
    say("|---|---|---|---|---|")
    for case in CASES:
        ratio = f"{best[case.label] / best[case.base]:.2f} | {case.limit}" if case.base else " | "
        say(f"| {case.label} | {best[case.label]:.2f} | {case.base} | {ratio} |")


if __name__ == "__main__":
    main(sys.argv[1:])
