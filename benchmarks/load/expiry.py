"""A million messages expire simultaneously behind a dead-letter exchange: their rate, and the waits of other
clients.
"""

import time
from collections.abc import Sequence
from time import perf_counter
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.amqp.filling import fill
from benchmarks.load.client_rig import Lost
from benchmarks.load.drive import Stalled
from benchmarks.load.figure import Figure, at_least
from benchmarks.load.gateway import MANAGEMENT
from benchmarks.load.management import Management
from benchmarks.load.measurement import stopwatch
from benchmarks.load.pings import pinging
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP

MESSAGES: Final = 1_000_000
BODY_BYTES: Final = 100
LIVING, DEAD = "bench.living", "bench.dead"
BURIAL: Final = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}
#: Required messages per second.
RATE: Final = 50_000.0
#: Interval between two progress checks.
REST_S: Final = 0.05
#: Time limit for any broker.
LONGEST_S: Final = 300.0


def measure_expiry(broker: Broker) -> Sequence[Figure]:
    """Fill a durable queue; set an expired time to live by policy; wait until the last dead letter is durable."""
    port, operator = broker.ports[AMQP], Management(broker.ports[MANAGEMENT])
    with connected(port) as control:
        control.declare_queue(DEAD, durable=True)
        control.declare_queue(LIVING, durable=True, arguments=BURIAL)
        control.confirm_select()
        fill(port, LIVING, MESSAGES, BODY_BYTES)
        with stopwatch(broker.pid) as watch, pinging(port) as pings:
            operator.put_policy("bench", f"^{LIVING}$", {"message-ttl": 1})
            _await_dead(control)
            _await_disk(control)
        if left := control.declare_queue(LIVING, passive=True):
            raise Lost(f"{left} messages are alive")
    cpu_us = watch.broker_cpu_s * 1e6 / MESSAGES
    return [
        at_least("messages a second, until the last is on disk", MESSAGES / watch.wall_s, RATE),
        Figure("broker CPU a message, µs", f"{cpu_us:.1f}"),
        Figure("longest wait of another client, ms", f"{pings.longest_ms:.0f}"),
    ]


def _await_dead(control: Client) -> None:
    deadline = perf_counter() + LONGEST_S
    while (dead := control.declare_queue(DEAD, passive=True)) < MESSAGES:
        if perf_counter() > deadline:
            raise Stalled(f"{dead} of {MESSAGES} messages moved")
        time.sleep(REST_S)
    if dead > MESSAGES:
        raise Lost(f"{dead} dead letters of {MESSAGES} messages")


def _await_disk(control: Client) -> None:
    """Confirms come in log order, so this one follows everything that was moved."""
    control.socket.sendall(wire.publish("", DEAD, b"the last one", persistent=True))
    control.read_confirm()
