"""Calls the interceptors of a virtual host for each published message."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.kernel.budget import TurnBudget
from gateway.kernel.faults import BadAnswer, Faults, shown
from gateway.kernel.interception.call_times import CallTimes
from gateway.kernel.interception.interceptor import Diversion, Interceptor, Refusal
from gateway.kernel.messages.message import Message

if TYPE_CHECKING:
    from gateway.kernel.interception.interceptor import Decision
    from gateway.kernel.messages.origin import Origin

#: The kind of the faults of interceptors.
FAULT: Final = "interceptor"

OnPublish: TypeAlias = "Callable[[Message, Origin], Decision]"


class InterceptionContext:
    """The name of a virtual host, its budget and its faults, which its chains and its hosted features share.

    ``on_refused`` is called with each message that an interceptor refuses, and the reason.
    """

    __slots__ = ("budget", "faults", "on_refused", "vhost_name")

    def __init__(
        self,
        vhost_name: str,
        budget: TurnBudget,
        faults: Faults,
        on_refused: "Callable[[Message, Origin, str], None]",
    ) -> None:
        self.vhost_name = vhost_name
        self.budget = budget
        self.faults = faults
        self.on_refused = on_refused


class PublishChain:
    """The interceptors of one virtual host that inspect publishes, in order. ``has_exchange`` tells whether one exists.

    Each call ends within the turn. A fault of an interceptor is contained; its ``on_error`` decides what follows.
    """

    __slots__ = ("_calls", "_context", "_has_exchange", "times")

    def __init__(
        self, interceptors: Sequence[Interceptor], context: InterceptionContext, has_exchange: Callable[[str], bool]
    ) -> None:
        self._calls: tuple[tuple[Interceptor, OnPublish], ...] = tuple(
            [(interceptor, interceptor.on_publish) for interceptor in interceptors]
        )
        self._context = context
        self.times = CallTimes(
            context.budget, context.faults, context.vhost_name, interceptors, "publish", "on_publish"
        )
        self._has_exchange = has_exchange

    @property
    def interceptors(self) -> tuple[Interceptor, ...]:
        """The interceptors in the order of their calls."""
        return tuple([interceptor for interceptor, _ in self._calls])

    def intercept(self, message: Message, origin: "Origin") -> Message | Refusal:
        """Return the message to publish, or why it is refused.

        It is the same object if nothing changed. The exchange of a diverted message is another one, which exists.
        """
        times = self.times
        times.begin()
        decision = self._decision(message, origin)
        times.end()
        if isinstance(decision, Refusal):
            self._context.on_refused(message, origin, decision.reason)
        return decision

    def _decision(self, message: Message, origin: "Origin") -> Message | Refusal:
        exchange, times = message.exchange, self.times
        for interceptor, on_publish in self._calls:
            try:
                decision = on_publish(message, origin)
                if decision is not message:
                    self._require_valid(decision, exchange)
            except BaseException as error:  # a plugin's exception must not reach the publisher
                self._context.faults.contain_in_part(FAULT, error, self._context.vhost_name, interceptor)
                if interceptor.on_error == "pass":
                    continue
                return Refusal("the broker could not inspect the message")
            if times.are_single:
                times.called(interceptor)
            if decision is message:
                continue
            if isinstance(decision, Refusal):
                return decision
            if isinstance(decision, Diversion):
                return _diverted(message if decision.message is None else decision.message, decision)
            message = decision
        return message

    def _require_valid(self, decision: object, exchange: str) -> None:
        """Require that a decision is one. :raises BadAnswer: if it is not."""
        if isinstance(decision, Message):
            if decision.exchange != exchange:
                raise BadAnswer("on_publish() returned a message for another exchange; that needs a Diversion")
        elif isinstance(decision, Diversion):
            if not self._has_exchange(decision.exchange):
                raise BadAnswer(
                    f"on_publish() diverts to the exchange {shown(decision.exchange)}, which does not exist"
                )
        elif not isinstance(decision, Refusal):
            raise BadAnswer(f"on_publish() returned {shown(decision)}, not a Message, Refusal or Diversion")


def _diverted(message: Message, diversion: Diversion) -> Message:
    """Return the message with its new address, which the keys of ``CC`` and ``BCC`` do not extend."""
    header = message.header
    if header.sender_keys:
        header = header.edited({})
        header.sender_keys = ()
    return message.with_address(diversion.exchange, diversion.routing_key, header)
