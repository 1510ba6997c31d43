"""A change of a policy that matches ten thousand queues: its cost, and the waits of other clients."""

import time
from collections.abc import Sequence
from time import perf_counter
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.client_rig import Lost
from benchmarks.load.drive import Stalled
from benchmarks.load.figure import Figure, at_most
from benchmarks.load.gateway import MANAGEMENT
from benchmarks.load.management import Definition, Management
from benchmarks.load.pings import pinging
from benchmarks.load.processes import main_thread_cpu_seconds
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP

QUEUES: Final = 10_000
PREFIX: Final = "bench.policy."
#: Successive definitions: a new one, a changed one, an empty one.
CHANGES: Final[Sequence[Definition]] = (
    {"message-ttl": 3_600_000, "max-length": 100_000, "dead-letter-exchange": ""},
    {"message-ttl": 7_200_000, "max-length": 100_000, "dead-letter-exchange": ""},
    {"max-length": 200_000},
)
#: Required seconds of reactor time for all queues, and milliseconds without a pause.
REACTOR_S, STRETCH_MS = 1.0, 50.0
#: Interval between two checks whether all queues follow.
REST_S: Final = 0.05
LONGEST_S: Final = 60.0


def measure_policy(broker: Broker) -> Sequence[Figure]:
    """Declare the queues with a message each; change the policy repeatedly; report the worst change."""
    port, operator = broker.ports[AMQP], Management(broker.ports[MANAGEMENT])
    names = [f"{PREFIX}{number}" for number in range(QUEUES)]
    with connected(port) as control:
        control.declare_queues(names)
        _put_a_message_in_each(control, names)
    reactor_s, longest_ms = 0.0, 0.0
    for definition in CHANGES:
        with pinging(port) as pings:
            reactor_s = max(reactor_s, _change(broker.pid, operator, names[-1], definition))
        longest_ms = max(longest_ms, pings.longest_ms)
        if (following := operator.definitions(PREFIX).count(definition)) != QUEUES:
            raise Lost(f"{following} of {QUEUES} queues follow the policy")
    return [
        at_most("reactor time of a change, including the checks, s", reactor_s, REACTOR_S, digits=2),
        at_most("longest wait of another client, ms", longest_ms, STRETCH_MS),
    ]


def _put_a_message_in_each(control: Client, names: Sequence[str]) -> None:
    control.confirm_select()
    control.socket.sendall(b"".join(wire.publish("", name, b"message", persistent=True) for name in names))
    while control.read_confirm() < len(names):
        pass


def _change(pid: int, operator: Management, last: str, definition: Definition) -> float:
    """Change the policy and wait until the last queue follows it; return the reactor's CPU seconds."""
    deadline = perf_counter() + LONGEST_S
    before_s = main_thread_cpu_seconds(pid)
    operator.put_policy("bench", f"^{PREFIX}", definition)
    while operator.definition_of(last) != definition:
        if perf_counter() > deadline:
            raise Stalled(f"{last} does not follow the policy")
        time.sleep(REST_S)
    return main_thread_cpu_seconds(pid) - before_s
