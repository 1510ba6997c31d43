"""The table of compared brokers, one row each."""

from collections.abc import Callable, Mapping, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.load import gateway, mosquitto, rabbitmq
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP, MQTT, STOMP, WEB_STOMP


@dataclass(frozen=True, slots=True)
class Peer:
    """A kind of broker. ``launch`` runs one in a directory until the context ends.

    ``absence`` returns the reason why this machine cannot run it, or None; it may install the broker first. The
    peer takes part in the workloads of its ``protocols``. ``idle_connections`` are the connections it is given, by
    protocol, ``backlog_messages`` the messages; 0 omits the measurement. Smaller figures shorten a slow peer's part
    of the run without changing the workloads.
    """

    name: str
    absence: Callable[[], str | None]
    launch: Callable[[Path], AbstractContextManager[Broker]]
    protocols: Set[str]
    idle_connections: Mapping[str, int]
    backlog_messages: int


#: The broker with requirements; the others are for comparison.
SUBJECT: Final = Peer(
    "gateway",
    gateway.absence,
    gateway.launch,
    {AMQP, MQTT, STOMP, WEB_STOMP},
    {AMQP: 5000, MQTT: 10_000, STOMP: 5000},
    backlog_messages=1_000_000,
)
#: The same with the management API, for measurements that use it.
MANAGED: Final = replace(SUBJECT, launch=gateway.launch_managed)

#: The subject first: it is compared with the peer that follows.
PEERS: Final = (
    SUBJECT,
    Peer(
        "rabbitmq",
        rabbitmq.absence,
        rabbitmq.launch,
        {AMQP, STOMP, WEB_STOMP},
        {AMQP: 1000, STOMP: 1000},
        backlog_messages=200_000,
    ),
    Peer("mosquitto", mosquitto.absence, mosquitto.launch, {MQTT}, {MQTT: 10_000}, backlog_messages=0),
)
