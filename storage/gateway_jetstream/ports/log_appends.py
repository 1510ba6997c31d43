"""Appends to logs: what is done for each batch."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gateway.cluster.queue_log import AppendAnswer, AppendOutcome, Claim, Position
from gateway_jetstream.errors import AppendInFlight, NatsError, WrongLastSequence
from gateway_jetstream.jetstream.publishing import (
    EXPECTED_SEQUENCE,
    EXPECTED_SUBJECT,
    MESSAGE_ID,
    PublishAck,
    StreamPublisher,
)
from gateway_jetstream.ports.layout import Layout

#: The time limit of an append, in seconds: after that the same batch is sent again.
_APPEND_S: Final = 3.0


class LogAppends:
    """Sends batches to the subjects of logs, each fenced by the claim. ``reactor`` makes delayed calls."""

    def __init__(self, publisher: StreamPublisher, layout: Layout, reactor: Any) -> None:  # Any: Twisted's reactor
        self._publisher = publisher
        self._layout = layout
        self._reactor = reactor

    def send(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        """Append a batch, unless there is a later claim; ``answered`` is called later, once."""
        fields = {
            MESSAGE_ID: f"{claim.queue}.{claim.epoch}.{number}",
            EXPECTED_SEQUENCE: str(claim.epoch),
            EXPECTED_SUBJECT: self._layout.owner_subject(claim.queue),
        }
        published = partial(self._published, answered)
        self._publisher.send(self._layout.log_subject(claim.queue), data, fields, _APPEND_S, published)

    def _published(self, answered: Callable[[AppendAnswer], None], outcome: PublishAck | NatsError) -> None:
        if isinstance(outcome, PublishAck):  # it came from the network, so not from inside ``send``
            answered(AppendAnswer(AppendOutcome.STORED, Position(outcome.sequence)))
        else:
            self._reactor.callLater(0, answered, AppendAnswer(_outcome_of(outcome), reason=str(outcome)))


def _outcome_of(error: NatsError) -> AppendOutcome:
    if isinstance(error, WrongLastSequence):
        return AppendOutcome.DEPOSED
    return AppendOutcome.IN_FLIGHT if isinstance(error, AppendInFlight) else AppendOutcome.UNANSWERED
