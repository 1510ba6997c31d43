"""The plan of a run: its programs and faults, chosen by the seed; some of them may be left out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from gateway.simulation.faults import (
    ClockJump,
    CompactStore,
    CutConnections,
    FailedStore,
    FailingPlugin,
    FailingSyncs,
    Fault,
    FullDisk,
    Kill,
    KillSoon,
    LyingDisk,
    MemoryAlarm,
    PowerCut,
    Restart,
    SlowDisk,
)
from gateway.simulation.process.limits import chosen_limits
from gateway.simulation.programs.amqp import AmqpConsumer, ConfirmedPublisher, TransactionalPublisher
from gateway.simulation.programs.cascading import CascadingQueue
from gateway.simulation.programs.consumers import ConsumerPriorities, SingleActiveConsumer
from gateway.simulation.programs.deduplicated import DeduplicatedMessages
from gateway.simulation.programs.delayed import DelayedPublishes
from gateway.simulation.programs.exclusive import ExclusiveQueue
from gateway.simulation.programs.expiring import BoundedQueue, ExpiringQueue
from gateway.simulation.programs.flooding import UncachedFlood
from gateway.simulation.programs.holding import HeldDeadLetters
from gateway.simulation.programs.kept import KeepingExchange
from gateway.simulation.programs.leased import LeasedQueue
from gateway.simulation.programs.mqtt.flooding import SubscribingFlood
from gateway.simulation.programs.mqtt.publisher import MqttPublisher
from gateway.simulation.programs.mqtt.retained import RetainedValues
from gateway.simulation.programs.mqtt.revoked import RevokedMqtt
from gateway.simulation.programs.mqtt.sharing import SharingReader
from gateway.simulation.programs.mqtt.subscriber import PassingReader, SessionReader
from gateway.simulation.programs.mqtt.takeover import ExpiringSession, SecondLogin
from gateway.simulation.programs.mqtt.wills import WillClient
from gateway.simulation.programs.operator import Operator
from gateway.simulation.programs.permissions import LimitedUser
from gateway.simulation.programs.plugins import PluginRouted, PluginUser
from gateway.simulation.programs.policies import PoliciedQueue
from gateway.simulation.programs.priorities import PriorityQueue
from gateway.simulation.programs.processing import TransactionalWorker
from gateway.simulation.programs.program import Program
from gateway.simulation.programs.purged import PurgedQueue
from gateway.simulation.programs.returning import ReturnedMessages
from gateway.simulation.programs.stomp.consumer import StompConsumer, StompDurable, StompPassing
from gateway.simulation.programs.stomp.flooding import SendingFlood
from gateway.simulation.programs.stomp.heartbeats import StompHeartbeats
from gateway.simulation.programs.stomp.publisher import StompPublisher, StompTransactions
from gateway.simulation.programs.stomp.revoked import RevokedStomp
from gateway.simulation.programs.streaming import StreamProgram
from gateway.simulation.programs.vhosts import OwnVhost
from gateway.simulation.programs.wide import WideRoutes
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The programs of each protocol. A kind that is listed twice is as likely again.
_AMQP: Final[Sequence[type[Program]]] = (
    ConfirmedPublisher,
    ConfirmedPublisher,
    TransactionalPublisher,
    AmqpConsumer,
    AmqpConsumer,
    ExclusiveQueue,
    ExpiringQueue,
    BoundedQueue,
    LimitedUser,
    ReturnedMessages,
    StreamProgram,
    StreamProgram,
    Operator,
    PoliciedQueue,
    PriorityQueue,
    TransactionalWorker,
    PluginRouted,
    PluginUser,
    WideRoutes,
    CascadingQueue,
    PurgedQueue,
    UncachedFlood,
    DelayedPublishes,
    DeduplicatedMessages,
    HeldDeadLetters,
    ConsumerPriorities,
    SingleActiveConsumer,
    KeepingExchange,
    OwnVhost,
    LeasedQueue,
)
_MQTT: Final[Sequence[type[Program]]] = (
    MqttPublisher,
    MqttPublisher,
    SessionReader,
    SessionReader,
    PassingReader,
    WillClient,
    RetainedValues,
    SharingReader,
    SharingReader,
    SecondLogin,
    ExpiringSession,
    RevokedMqtt,
    SubscribingFlood,
)
_STOMP: Final[Sequence[type[Program]]] = (
    StompPublisher,
    StompPublisher,
    StompTransactions,
    StompConsumer,
    StompConsumer,
    StompDurable,
    StompPassing,
    StompHeartbeats,
    RevokedStomp,
    SendingFlood,
)

#: Those whose publishes and sessions meet most often: exactly once needs both ends.
_SESSIONS: Final[Sequence[type[Program]]] = (MqttPublisher, SessionReader)

#: What the programs of a run are chosen from: programs of one protocol meet each other more often.
CHOICES: Final[Sequence[Sequence[type[Program]]]] = (
    (*_AMQP, *_MQTT, *_STOMP),
    (*_AMQP, *_MQTT, *_STOMP),
    _AMQP,
    _AMQP,
    _MQTT,
    _SESSIONS,
    _STOMP,
)

#: The faults of which a run has some.
FAULTS: Final[Sequence[type[Fault]]] = (
    Kill,
    KillSoon,
    PowerCut,
    Restart,
    CutConnections,
    CutConnections,
    MemoryAlarm,
    ClockJump,
    FullDisk,
    SlowDisk,
    FailingSyncs,
    FailedStore,
    LyingDisk,
    FailingPlugin,
    CompactStore,
)

_MOST_PROGRAMS: Final = 6
_MOST_FAULTS: Final = 4


@dataclass
class RunPlan:
    """The programs and faults of a run; ``size`` is their number before some were left out.

    ``limits`` are those of the work of a turn that are smaller than usual, by their names.
    """

    topology: SharedTopology
    programs: list[Program]
    faults: list[Fault]
    size: int
    limits: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def chosen(cls, scene: Scene, only: Collection[int] | None = None) -> "RunPlan":
        """Choose the plan of a run; ``only`` has the numbers of the items to keep, ``None`` keeps all."""
        seed = scene.world.seed
        random = Random(f"{seed} plan")
        topology = SharedTopology.chosen(random, scene.history)
        kinds = random.choice(CHOICES)
        programs = [random.choice(kinds) for _ in range(random.randint(2, _MOST_PROGRAMS))]
        faults = [random.choice(FAULTS) for _ in range(random.randint(0, _MOST_FAULTS))]
        plan = cls(topology, [], [], len(programs) + len(faults), chosen_limits(seed))
        for number, kind in enumerate(programs):
            program = kind(scene, topology, number, Random(f"{seed} item {number}"))
            if only is None or number in only:
                plan.programs.append(program)
        for number, fault in enumerate(faults, len(programs)):
            if only is None or number in only:
                plan.faults.append(fault(scene, topology, number, Random(f"{seed} item {number}")))
        return plan
