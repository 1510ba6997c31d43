"""The protocols of the load generator's rigs, as tables: one row each."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeAlias

from benchmarks.load.amqp.rig import open_rigs as open_amqp_lanes
from benchmarks.load.client_rig import ClientRig, ExchangeRig, QueueRig
from benchmarks.load.running import Broker
from benchmarks.load.stomp.rig import open_rigs as open_stomp_lanes
from benchmarks.load.workloads import AMQP, STOMP, WEB_STOMP, Workload

#: The ports of a broker on loopback, by protocol.
Ports: TypeAlias = Mapping[str, int]

OpenRigs: TypeAlias = Callable[[Ports, Workload], AbstractContextManager[Sequence[ClientRig]]]
OpenExchangeRigs: TypeAlias = Callable[[Ports, Workload], AbstractContextManager[Sequence[ExchangeRig]]]


class OpenQueueRigs(Protocol):
    """Sets up the clients of a workload until the context ends, without consumers by default."""

    def __call__(
        self, ports: Ports, workload: Workload, *, consume: bool = True
    ) -> AbstractContextManager[Sequence[QueueRig]]: ...


#: For messages in flight: the consumers exist from the start.
RIGS: Final[Mapping[str, OpenRigs]] = {
    AMQP: open_amqp_lanes,
    STOMP: open_stomp_lanes,
    WEB_STOMP: open_stomp_lanes,
}

#: For messages that are sent one by one.
EXCHANGE_RIGS: Final[Mapping[str, OpenExchangeRigs]] = {
    AMQP: open_amqp_lanes,
    STOMP: open_stomp_lanes,
    WEB_STOMP: open_stomp_lanes,
}

#: For messages that wait, or are confirmed one by one.
QUEUE_RIGS: Final[Mapping[str, OpenQueueRigs]] = {
    AMQP: open_amqp_lanes,
}


def open_rigs(broker: Broker, workload: Workload) -> AbstractContextManager[Sequence[ClientRig]]:
    """Open the rigs of a workload in its protocol."""
    return RIGS[workload.protocol](broker.ports, workload)


def open_exchange_rigs(broker: Broker, workload: Workload) -> AbstractContextManager[Sequence[ExchangeRig]]:
    """Open the rigs of a workload in its protocol, for messages that are sent one by one."""
    return EXCHANGE_RIGS[workload.protocol](broker.ports, workload)


def open_queue_rigs(
    broker: Broker, workload: Workload, *, consume: bool = True
) -> AbstractContextManager[Sequence[QueueRig]]:
    """Open the rigs of a workload in its protocol, for messages that may wait; without consumers by default."""
    return QUEUE_RIGS[workload.protocol](broker.ports, workload, consume=consume)
