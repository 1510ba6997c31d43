"""Transactions: SENDs and settlements that are held until COMMIT, and are then performed all together or not at all.

RabbitMQ performs them one after the other and does not undo the first ones after an error. Here a commit first checks
all of them; whether it takes one turn or several, it is one step of the store (1.2, "BEGIN" to "ABORT").
"""

from collections.abc import Iterator, Mapping
from typing import Final

from gateway.kernel.budget import PendingWork
from gateway.kernel.clock import freeing
from gateway.kernel.errors import GatewayError
from gateway_stomp.committing import Transaction, TransactionCommit
from gateway_stomp.errors import StompError
from gateway_stomp.frames import Head
from gateway_stomp.listener_context import StompContext
from gateway_stomp.publishing import Publishing
from gateway_stomp.scope import Host
from gateway_stomp.settling import Settling

#: Approximate size of an action besides the bytes of its head and body.
_ACTION_SIZE: Final = 256

#: Actions of a transaction that are dropped in one turn; more are freed in slices.
_FREED_AT_ONCE: Final = 4096


class Transactions:
    """Owns the open transactions of one connection, by the client's names.

    ``_size`` is the approximate memory of all their messages in bytes.
    """

    __slots__ = ("_by_name", "_clock", "_host", "_journal", "_publishing", "_settings", "_settling", "_size")

    def __init__(self, host: Host, settings: StompContext, publishing: Publishing, settling: Settling) -> None:
        self._host = host
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

    def commit(self, head: Head) -> PendingWork:
        """Perform the held actions in order, in several turns if there are many; return the pending work.

        It is refused if a queue refused one of the messages, or if an action of a long transaction is not allowed any
        more; the host is told why then.

        :raises GatewayError: when an action is not allowed any more; none is performed then.
        """
        name = _named("COMMIT", head.headers)
        transaction = self._known(name)
        commit = TransactionCommit(transaction, self._publishing, self._journal)
        if transaction.is_long:
            self._continue(commit.work, self._committing(name, transaction, commit, head))
            return commit.work
        for _ in commit.preparing():
            pass
        performing = commit.performing()
        self._forget(name)
        if performing.is_small:
            for _ in performing.steps():
                pass
            commit.work.finish()
        else:
            self._continue(commit.work, performing.steps())
        return commit.work

    def _committing(self, name: str, transaction: Transaction, commit: TransactionCommit, head: Head) -> Iterator[None]:
        """Return the steps of a long transaction. It can be dropped until the first message is published."""
        commit.work.is_refused = True
        try:
            yield from commit.preparing()
        except GatewayError as error:
            self._host.refuse(error, head)
        else:
            if not transaction.is_dropped:
                commit.work.is_refused = False
                self._forget(name)
                self._free(transaction)
                yield from commit.performing().steps()

    def _continue(self, work: PendingWork, steps: Iterator[None]) -> None:
        """Run the steps of a commit in this turn and in later ones; the connection and its receipts wait for them."""
        self._publishing.wait_for(work)
        self._clock.background.add(_finishing(self._journal.budget.caused_by(work, steps), work))
        self._journal.budget.leave_rest_pending(work)

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
            transaction.is_dropped = True
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


def _finishing(steps: Iterator[None], work: PendingWork) -> Iterator[None]:
    try:
        yield from steps
    finally:
        work.finish()


def _named(verb: str, headers: Mapping[str, str]) -> str:
    name = headers.get("transaction")
    if name is None:
        raise StompError("Missing transaction", f"\"{verb}\" must include a 'transaction' header\n")
    return name
