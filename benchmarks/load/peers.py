"""The brokers compared, as a table: one row a broker."""

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
    """A kind of broker. ``launch`` runs one on a directory until the context ends.

    ``absence`` tells why this machine cannot run it, or None when it can; it
    may install the broker first. It takes part in the workloads of the
    ``protocols`` it speaks. ``idle_connections`` says how many it is given,
    by protocol, ``backlog_messages`` how many messages, 0 for no such
    measurement. Smaller figures keep a slow peer's part of the run short;
    they do not touch the workloads.
    """

    name: str
    absence: Callable[[], str | None]
    launch: Callable[[Path], AbstractContextManager[Broker]]
    protocols: Set[str]
    idle_connections: Mapping[str, int]
    backlog_messages: int


#: The one that owes something; the others are there to compare with.
SUBJECT: Final = Peer(
    "gateway",
    gateway.absence,
    gateway.launch,
    {AMQP, MQTT, STOMP, WEB_STOMP},
    {AMQP: 5000, MQTT: 10_000, STOMP: 5000},
    backlog_messages=1_000_000,
)
#: The same with an operator's way in, for measurements in which one takes part.
MANAGED: Final = replace(SUBJECT, launch=gateway.launch_managed)

#: The subject first: where two peers are compared, it is the one that must win.
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
