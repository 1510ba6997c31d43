"""Transactions: SENDs and settlements that are held until COMMIT, and are then performed all together or not at all.

RabbitMQ performs them one after the other and does not undo the first ones after an error. Here a commit first checks
all of them; whether it takes one turn or several, it is one step of the store (1.2, "BEGIN" to "ABORT").
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from gateway.kernel.budget import PendingWork
from gateway.kernel.clock import freeing
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.ledger import Delivery, settle_all
from gateway.kernel.routing.exchange import Route
from gateway.kernel.routing.router import Walk
from gateway.kernel.routing.sliced_fanout import SlicedFanout
from gateway.kernel.vhosts.commit import Commit
from gateway.kernel.vhosts.verdict import Verdict
from gateway_stomp.errors import StompError
from gateway_stomp.frames import Head
from gateway_stomp.listener_context import StompContext
from gateway_stomp.publishing import PreparedSend, Publishing
from gateway_stomp.settling import Settling

#: Approximate size of an action besides the bytes of its head and body.
_ACTION_SIZE: Final = 256

#: Actions of a transaction that are dropped in one turn; more are freed in slices.
_FREED_AT_ONCE: Final = 4096

#: The most deliveries that one action of a commit settles.
_SETTLED_AT_ONCE: Final = 64

#: An action of a transaction that is committed.
Prepared: TypeAlias = PreparedSend | tuple[list[Delivery], DeliveryOutcome]


class Transaction:
    """The actions of one transaction in order: a head and its body, or deliveries and their outcome.

    ``size`` is the approximate memory of its messages in bytes.
    """

    __slots__ = ("actions", "size")

    def __init__(self) -> None:
        self.size = 0
        self.actions: list[tuple[Head, bytes] | tuple[list[Delivery], DeliveryOutcome]] = []

    @property
    def sends(self) -> list[Head]:
        """The heads of the held SENDs."""
        return [first for first, _ in self.actions if isinstance(first, Head)]

    @property
    def deliveries(self) -> list[Delivery]:
        """The deliveries whose settlement is held."""
        return [delivery for first, _ in self.actions if not isinstance(first, Head) for delivery in first]


class Transactions:
    """Owns the open transactions of one connection, by the client's names.

    ``_size`` is the approximate memory of all their messages in bytes.
    """

    __slots__ = ("_by_name", "_clock", "_journal", "_publishing", "_settings", "_settling", "_size")

    def __init__(self, settings: StompContext, publishing: Publishing, settling: Settling) -> None:
        self._settings = settings
        self._journal = settings.broker.journal
        self._clock = settings.broker.clock
        self._size = 0
        self._publishing = publishing
        self._settling = settling
        self._by_name: dict[str, Transaction] = {}

    @property
    def held(self) -> tuple[int, int]:
        """The number of messages and of settlements that wait for a commit."""
        messages = sum(len(transaction.sends) for transaction in self._by_name.values())
        return messages, sum(len(transaction.deliveries) for transaction in self._by_name.values())

    def begin(self, headers: Mapping[str, str]) -> None:
        """Start a transaction. :raises StompError: when its name is missing or in use, or the limit is reached."""
        name = _named("BEGIN", headers)
        if name in self._by_name:
            raise StompError("Bad transaction", f'Transaction "{name[:200]}" has already begun\n')
        limit = self._settings.max_transactions
        if len(self._by_name) >= limit:
            detail = f"Too many concurrent transactions (limit {limit})"
            raise StompError("Transaction limit exceeded", detail)
        self._by_name[name] = Transaction()

    def send(self, name: str, head: Head, body: bytes) -> None:
        """Hold a SEND. :raises GatewayError: when it is invalid, or there is no such transaction."""
        transaction = self._extendable(name)
        size = len(body) + head.size + _ACTION_SIZE
        limit = self._settings.max_transaction_size
        if self._size + size > limit:
            raise StompError("Transaction too large", f"Too many bytes in open transactions (limit {limit})")
        self._publishing.check(head)
        transaction.actions.append((head, body))
        transaction.size += size
        self._size += size

    def settle(self, name: str, verb: str, headers: Mapping[str, str]) -> None:
        """Hold an ACK or NACK. :raises StompError: when it is invalid, or there is no such transaction."""
        transaction = self._extendable(name)
        transaction.actions.append(self._settling.take(verb, headers))

    def commit(self, headers: Mapping[str, str]) -> PendingWork:
        """Perform the held actions in order, in several turns if there are many; return the pending work.

        It is refused if a queue refused one of the messages.

        :raises GatewayError: when an action is not allowed any more; none is performed then.
        """
        name = _named("COMMIT", headers)
        transaction = self._known(name)
        for head in transaction.sends:
            self._publishing.check(head)
        work = PendingWork()
        commit = self._commit_of(transaction, work)
        self._forget(name)
        if commit.is_small:
            for _ in commit.steps():
                pass
            work.finish()
        else:
            self._publishing.wait_for(work)
            steps = self._journal.budget.caused_by(work, commit.steps())
            self._clock.background.add(_committing(steps, work))
            self._journal.budget.leave_rest_pending(work)
        return work

    def _commit_of(self, transaction: Transaction, work: PendingWork) -> "Commit[Prepared]":
        publishing = self._publishing

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

        actions = self._prepared(transaction)
        return Commit(self._journal, actions, find_route, publishing.walking, perform, fanout_of, offered)

    def _prepared(self, transaction: Transaction) -> "list[Prepared]":
        """Return the actions of a transaction; each settles few deliveries."""
        prepared: list[Prepared] = []
        for action in transaction.actions:
            match action:
                case Head() as head, bytes() as body:
                    prepared.append(self._publishing.prepare(head, body))
                case list() as deliveries, DeliveryOutcome() as outcome:
                    prepared += [
                        (deliveries[at : at + _SETTLED_AT_ONCE], outcome)
                        for at in range(0, len(deliveries), _SETTLED_AT_ONCE)
                    ]
        return prepared

    def abort(self, headers: Mapping[str, str]) -> None:
        """Drop the held actions. :raises StompError: when there is no such transaction."""
        name = _named("ABORT", headers)
        transaction = self._known(name)
        self._settling.restore(transaction.deliveries)
        self._forget(name)
        self._free(transaction)

    def abandon(self) -> None:
        """Drop all transactions: the connection ends (1.2, "Transactions")."""
        for transaction in self._by_name.values():
            self._settling.restore(transaction.deliveries)
            self._free(transaction)
        self._by_name.clear()
        self._size = 0

    def _free(self, transaction: Transaction) -> None:
        """Free the messages of a large transaction in later turns."""
        if len(transaction.actions) > _FREED_AT_ONCE:
            self._clock.background.add_later(freeing(transaction.actions))

    def _forget(self, name: str) -> None:
        self._size -= self._by_name.pop(name).size

    def _known(self, name: str) -> Transaction:
        transaction = self._by_name.get(name)
        if transaction is None:
            raise StompError("Bad transaction", f'Invalid transaction identifier: "{name[:200]}"\n')
        return transaction

    def _extendable(self, name: str) -> Transaction:
        transaction = self._known(name)
        limit = self._settings.max_transaction_actions
        if len(transaction.actions) >= limit:
            raise StompError("Transaction too large", f"Too many actions in transaction (limit {limit})")
        return transaction


def _committing(steps: Iterator[None], work: PendingWork) -> Iterator[None]:
    try:
        yield from steps
    finally:
        work.finish()


def _named(verb: str, headers: Mapping[str, str]) -> str:
    name = headers.get("transaction")
    if name is None:
        raise StompError("Missing transaction", f"\"{verb}\" must include a 'transaction' header\n")
    return name
