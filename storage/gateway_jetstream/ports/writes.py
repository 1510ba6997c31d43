"""Compare-and-set writes that are repeated until there is an answer."""

import secrets
from dataclasses import dataclass
from typing import Any, Final

from gateway.cluster.errors import Outdated, TooLarge, Unanswered
from gateway_jetstream.errors import ApiError, AppendInFlight, NatsError, TooMuch, WrongLastSequence
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.publishing import EXPECTED_SEQUENCE, MESSAGE_ID, StreamPublisher
from gateway_jetstream.jetstream.stream_message import last_of_subject
from gateway_jetstream.ports.repeating import ATTEMPT_S, ATTEMPTS_S, PAUSE_S, pause, repeated

#: A message with the same id is being stored: the answer comes with the next attempt.
_SAME_ID_IN_FLIGHT: Final = 10158


@dataclass(frozen=True, slots=True)
class ComparedWriter:
    """Writes messages whose subject must have an expected last sequence. ``reactor`` waits."""

    api: JetStreamApi
    publish: StreamPublisher
    reactor: Any  # Any: Twisted's interfaces are not types

    async def write(self, stream: str, subject: str, payload: bytes, expected: int, fields: dict[str, str]) -> int:
        """Return the sequence of the message.

        Each attempt has the same id, so it is stored once. If an attempt had no answer and the next one is refused, the
        last message decides whether it was stored.

        :raises Outdated: if the last sequence is not the expected one.
        :raises Unanswered: if there is no answer in time.
        """
        message_id = secrets.token_hex(12)
        fields = {**fields, MESSAGE_ID: message_id, EXPECTED_SEQUENCE: str(expected)}
        ends_s = self.reactor.seconds() + ATTEMPTS_S
        is_uncertain = False
        while True:
            try:
                return (await self.publish(subject, payload, fields, ATTEMPT_S)).sequence
            except TooMuch as error:
                raise TooLarge(str(error)) from None
            except WrongLastSequence as error:
                written = await self._written(stream, subject, message_id) if is_uncertain else None
                if written is not None:
                    return written
                raise Outdated(str(error)) from None
            except AppendInFlight as error:
                reason = str(error)
            except NatsError as error:
                reason = str(error)
                is_uncertain |= not isinstance(error, ApiError) or error.code == _SAME_ID_IN_FLIGHT
            if self.reactor.seconds() >= ends_s:
                raise Unanswered(reason)
            await pause(self.reactor, PAUSE_S)

    async def _written(self, stream: str, subject: str, message_id: str) -> int | None:
        """Return the sequence of the last message if it has this id."""
        try:
            found = await repeated(self.reactor, lambda: last_of_subject(self.api, stream, subject, ATTEMPT_S))
        except NatsError as error:
            raise Unanswered(str(error)) from None
        return found.sequence if found is not None and found.field(MESSAGE_ID) == message_id else None
