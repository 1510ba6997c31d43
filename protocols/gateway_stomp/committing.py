"""The commit of one transaction: all of it is checked and prepared before the first message is published.

A check that succeeded is valid until the end of the commit, as that of an AMQP publish in a transaction is: it does
not matter that a permission is revoked meanwhile, and an exchange that is deleted meanwhile routes to no queue.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.kernel.budget import PendingWork
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.ledger import MOST_AT_ONCE, Delivery, settle_all
from gateway.kernel.routing.exchange import Route
from gateway.kernel.routing.router import Walk
from gateway.kernel.routing.sliced_fanout import SlicedFanout
from gateway.kernel.vhosts.commit import Commit
from gateway.kernel.vhosts.verdict import Verdict
from gateway_stomp.frames import Head
from gateway_stomp.publishing import PreparedSend, Publishing
from gateway_stomp.target import Target

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: Actions that are checked or prepared between two readings of the clock, and the most deliveries that one settles.
_STEP: Final = 64

#: An action of a transaction that is committed.
Prepared: TypeAlias = PreparedSend | tuple[list[Delivery], DeliveryOutcome]


class Transaction:
    """The actions of one transaction in order: a head and its body, or deliveries and their outcome.

    ``size`` is the approximate memory of its messages in bytes. A transaction that ``is_dropped`` is not committed.
    """

    __slots__ = ("actions", "is_dropped", "size")

    def __init__(self) -> None:
        self.size = 0
        self.is_dropped = False
        self.actions: list[tuple[Head, bytes] | tuple[list[Delivery], DeliveryOutcome]] = []

    @property
    def is_long(self) -> bool:
        """Whether it has more actions than are checked in one turn."""
        return len(self.actions) > MOST_AT_ONCE

    @property
    def sends(self) -> list[Head]:
        """The heads of the held SENDs."""
        return [first for first, _ in self.actions if isinstance(first, Head)]

    @property
    def deliveries(self) -> list[Delivery]:
        """The deliveries whose settlement is held."""
        return [delivery for first, _ in self.actions if not isinstance(first, Head) for delivery in first]


class TransactionCommit:
    """Commits a transaction: first ``preparing``, then ``performing``. ``work`` is refused if a queue refuses one."""

    def __init__(self, transaction: Transaction, publishing: Publishing, journal: "Journal") -> None:
        self._transaction = transaction
        self._publishing = publishing
        self._journal = journal
        self._prepared: list[Prepared] = []
        self.work = PendingWork()

    def preparing(self) -> Iterator[None]:
        """Return the steps that check all actions, then prepare them. They end if the transaction is dropped.

        :raises GatewayError: when an action is not allowed any more.
        """
        transaction = self._transaction
        targets: list[Target] = []
        for first in range(0, len(transaction.actions), _STEP):
            if transaction.is_dropped:
                return
            for head, _ in transaction.actions[first : first + _STEP]:
                if isinstance(head, Head):
                    targets.append(self._publishing.check(head))
            yield
        targets.reverse()
        for first in range(0, len(transaction.actions), _STEP):
            if transaction.is_dropped:
                return
            self._prepare_some(first, targets)
            yield

    def _prepare_some(self, first: int, targets: list[Target]) -> None:
        """Prepare some actions, each of few deliveries; ``targets`` are those of the next SENDs, in reverse order."""
        for action in self._transaction.actions[first : first + _STEP]:
            match action:
                case Head() as head, bytes() as body:
                    self._prepared.append(self._publishing.prepare(head, body, targets.pop()))
                case list() as deliveries, DeliveryOutcome() as outcome:
                    self._prepared += [
                        (deliveries[at : at + _STEP], outcome) for at in range(0, len(deliveries), _STEP)
                    ]

    def performing(self) -> "Commit[Prepared]":
        """Return the commit of the prepared actions."""
        publishing, work = self._publishing, self.work

        def perform(action: Prepared, route: Route | None) -> None:
            if isinstance(action, PreparedSend):
                assert route is not None
                if publishing.publish_to_route(action, route) is Verdict.REFUSED:
                    work.is_refused = True
            else:
                settle_all(*action)

        def fanout_of(action: Prepared, route: Route) -> SlicedFanout:
            assert isinstance(action, PreparedSend)
            return publishing.fanout_of(action, route)

        def offered(action: Prepared, fanout: SlicedFanout) -> None:
            assert isinstance(action, PreparedSend)
            publishing.offered(action, fanout)
            work.is_refused = work.is_refused or fanout.is_refused

        def find_route(action: Prepared) -> Route | Walk | None:
            return publishing.find_route(action) if isinstance(action, PreparedSend) else None

        actions, self._prepared = self._prepared, []
        return Commit(self._journal, actions, find_route, publishing.walking, perform, fanout_of, offered)
