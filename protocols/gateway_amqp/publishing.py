"""The three publishing modes of a channel: plain, with confirms, and transactional."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import ClassVar, Final, Protocol, TypeAlias

from gateway.kernel.clock import freeing
from gateway.kernel.errors import NotImplementedHere, PreconditionFailed
from gateway.kernel.interception.publish_chain import PublishChain
from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.journal.journal import Journal
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.channel_counters import PublishCounters
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.ledger import Delivery, settle_all
from gateway.kernel.routing.exchange import Exchange, Route
from gateway.kernel.routing.router import Walk
from gateway.kernel.routing.sliced_fanout import SlicedFanout
from gateway.kernel.vhosts.commit import Commit
from gateway.kernel.vhosts.verdict import REFUSED, TAKEN, UNDECIDED, UNROUTED, Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway_amqp.errors import FrameError
from gateway_amqp.holdings import OVERHEAD, Holdings

_MANDATORY = 1
_IMMEDIATE = 2


class Target:
    """The target of ``basic.publish``, resolved once for equal method frames.

    Valid while ``version`` is the virtual host's, which changes with its exchanges and permissions. Publishes count in
    ``tally``, and pass the interceptors of the ``chain``, if there are any.
    """

    __slots__ = ("chain", "exchange", "exchange_name", "is_mandatory", "routing_key", "tally", "version")

    def __init__(
        self,
        exchange: Exchange,
        routing_key: str,
        is_mandatory: bool,
        version: int,
        tally: PublishCounters,
        chain: PublishChain | None = None,
    ) -> None:
        self.exchange = exchange
        self.exchange_name = exchange.name
        self.routing_key = routing_key
        self.is_mandatory = is_mandatory
        self.version = version
        self.tally = tally
        self.chain = chain

    def for_key(self, routing_key: str, is_mandatory: bool) -> "Target":
        """Return the target of a publish to the same exchange."""
        chain = self.chain
        if chain is not None and chain.is_keyed:
            chain = chain.for_key(routing_key)
        return Target(self.exchange, routing_key, is_mandatory, self.version, self.tally, chain)


def parse_publish(payload: bytes) -> tuple[str, str, bool]:
    """Return (exchange, routing key, mandatory) of a ``basic.publish`` method.

    :raises FrameError: when the arguments are malformed.

    :raises NotImplementedHere: when ``immediate`` is set (R21).
    """
    try:
        exchange_end = 7 + payload[6]
        key_end = exchange_end + 1 + payload[exchange_end]
        if key_end + 1 != len(payload):
            raise IndexError
        exchange = payload[7:exchange_end].decode()
        routing_key = payload[exchange_end + 1 : key_end].decode()
    except IndexError:
        raise FrameError(501, "cannot decode the arguments of basic.publish", 60, 40) from None
    except UnicodeDecodeError:
        raise FrameError(501, "Malformed UTF-8 in shortstr", 60, 40) from None
    if payload[key_end] & _IMMEDIATE:
        raise NotImplementedHere("immediate=true")
    return exchange, routing_key, bool(payload[key_end] & _MANDATORY)


#: Actions of a large transaction between two checks of the clock, and the most deliveries that one of them settles.
_STEP: Final = 64

#: Actions of a transaction that are dropped in one turn; more are freed in slices.
_FREED_AT_ONCE: Final = 4096

Unrouted = Callable[[Target, Message], None]
"""Returns a mandatory message that was not routed to its publisher."""


class Publisher(Protocol):
    """Publishing and settling in one of the three modes of a channel."""

    def publish(self, target: Target, message: Message) -> None:
        """Publish a message."""
        ...

    def settle(self, deliveries: list[Delivery], outcome: DeliveryOutcome) -> None:
        """Settle deliveries."""
        ...


class Plain:
    """Publishes at once, without answers."""

    name: ClassVar[str] = "plain"

    def __init__(self, vhost: VirtualHost, origin: Origin, unrouted: Unrouted) -> None:
        self._vhost = vhost
        self._origin = origin
        self._unrouted = unrouted

    def publish(self, target: Target, message: Message) -> None:
        """Route the message to its queues; return it if it is mandatory and there are none (R20)."""
        verdict = self._vhost.publish(target.exchange, message, self._origin)
        if verdict is not TAKEN:
            self._not_taken(verdict, target, message)

    def _not_taken(self, verdict: Verdict, target: Target, message: Message) -> None:
        """Return a message without a route, in a later turn if that is not known yet."""
        if verdict is UNROUTED:
            self._unrouted(target, message)
        elif verdict is UNDECIDED:
            self._vhost.wide_publishing.when_unrouted(lambda: self._unrouted(target, message))

    def settle(self, deliveries: list[Delivery], outcome: DeliveryOutcome) -> None:
        """Settle at once."""
        settle_all(deliveries, outcome)

    def close(self) -> None:
        """Return no message any more."""
        self._unrouted = lambda target, message: None


class Confirming(Plain):
    """Publishes at once, and confirms when the message is stored, or was refused (R119-R121)."""

    name: ClassVar[str] = "confirm"

    def __init__(self, vhost: VirtualHost, origin: Origin, unrouted: Unrouted, confirms: Confirms) -> None:
        super().__init__(vhost, origin, unrouted)
        self.confirms = confirms

    def publish(self, target: Target, message: Message) -> None:
        """Route the message; its confirm is due at the end of the turn, or when the message is durable."""
        verdict = self._vhost.publish(target.exchange, message, self._origin)
        if verdict is not TAKEN:
            self._not_taken(verdict, target, message)
        self.confirms.published(verdict is not REFUSED, message.id != 0)


#: An action of a transaction: a message for a target, or deliveries and their outcome.
Action: TypeAlias = tuple[Target, Message] | tuple[list[Delivery], DeliveryOutcome]


class Transactional(Plain):
    """Holds publishes and settlements until the commit, which performs all in one turn and one store step (R115). A
    rollback drops the publishes, and leaves the deliveries unsettled.
    """

    name: ClassVar[str] = "tx"

    def __init__(
        self,
        vhost: VirtualHost,
        origin: Origin,
        unrouted: Unrouted,
        restore_unsettled: Callable[[list[Delivery]], None],
        holdings: Holdings,
        journal: Journal,
    ) -> None:
        super().__init__(vhost, origin, unrouted)
        self._restore_unsettled = restore_unsettled
        self._holdings = holdings
        self._journal = journal
        self._size = 0
        self._held: list[Action] = []
        self._settled: list[list[Delivery]] = []

    def publish(self, target: Target, message: Message) -> None:
        """Hold a message. :raises PreconditionFailed: when the connection's holdings exceed their limit."""
        self._hold(len(message.body) + len(message.header.raw))
        self._held.append((target, message))

    def settle(self, deliveries: list[Delivery], outcome: DeliveryOutcome) -> None:
        """Hold a settlement. :raises PreconditionFailed: when the connection's holdings exceed their limit."""
        self._settled.append(deliveries)
        self._held += [(deliveries[at : at + _STEP], outcome) for at in range(0, len(deliveries), _STEP)]
        self._hold(OVERHEAD * len(deliveries))  # after a refusal, the rollback still finds the deliveries

    @property
    def held(self) -> tuple[int, int]:
        """The number of messages and of acknowledgements that wait for the commit."""
        settled = sum(map(len, self._settled))
        return sum(isinstance(first, Target) for first, _ in self._held), settled

    @property
    def undecided(self) -> Iterator[Delivery]:
        """The deliveries whose settlement is held: until the commit they count against credit."""
        return chain.from_iterable(self._settled)

    @property
    def undecided_size(self) -> int:
        """The total size of their bodies in bytes."""
        return sum(len(delivery.entry.message.body) for delivery in self.undecided)

    def committing(self) -> Iterator[None]:
        """Return the steps that perform the held actions, in order, as one step of the store."""
        held, self._held, self._settled = self._held, [], []
        self._release_held()
        vhost = self._vhost
        commit = Commit(self._journal, held, self._find_route, vhost.walking, self._perform, self._fanout_of, _offered)
        return commit.steps()

    def _find_route(self, action: "Action") -> "Route | Walk | None":
        first, second = action
        if isinstance(first, Target) and isinstance(second, Message):
            return self._vhost.find_route(first.exchange, second)
        return None

    def _perform(self, action: "Action", route: "Route | None") -> None:
        first, second = action
        if route is not None and isinstance(first, Target) and isinstance(second, Message):
            if self._vhost.publish_to_route(route, second, self._origin) is UNROUTED:
                self._unrouted(first, second)
        elif isinstance(first, list) and isinstance(second, DeliveryOutcome):
            settle_all(first, second)

    def _fanout_of(self, action: "Action", route: Route) -> SlicedFanout:
        _, message = action
        assert isinstance(message, Message)
        return self._vhost.wide_publishing.fanout_of(route, message, self._origin)

    def rollback(self) -> None:
        """Drop everything that was held; the deliveries are unsettled again."""
        held, self._held = self._held, []
        settled, self._settled = self._settled, []
        self._release_held()
        for deliveries in settled:
            self._restore_unsettled(deliveries)
        if len(held) > _FREED_AT_ONCE:
            self._journal.clock.background.add_later(freeing(held))

    def _hold(self, size: int) -> None:
        self._holdings.hold(size)
        self._size += size + OVERHEAD

    def _release_held(self) -> None:
        self._holdings.release(self._size)
        self._size = 0


def _offered(action: "Action", fanout: SlicedFanout) -> None:
    """Do nothing: a transaction reports no single message that was refused."""


def require_mode(current: Publisher, wanted: str) -> None:
    """Refuse to switch between confirms and transactions (R117). :raises PreconditionFailed: if the mode differs."""
    name = getattr(current, "name", "plain")
    if name not in ("plain", wanted):
        raise PreconditionFailed(f"cannot switch from {name} to {wanted} mode")
