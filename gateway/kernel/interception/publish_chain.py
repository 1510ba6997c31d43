"""Calls the interceptors of a virtual host for each published message."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gateway.kernel.budget import TurnBudget
from gateway.kernel.faults import BadAnswer, Faults, shown
from gateway.kernel.interception.call_times import CallTimes
from gateway.kernel.interception.header_decisions import HeaderDecisions
from gateway.kernel.interception.interceptor import Diversion, Interceptor, Refusal
from gateway.kernel.messages.message import Message

if TYPE_CHECKING:
    from gateway.kernel.interception.interceptor import Decision
    from gateway.kernel.messages.origin import Origin

OnPublish: TypeAlias = "Callable[[Message, Origin], object]"


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
    """The interceptors of one virtual host that inspect publishes, in order. ``has_exchange``: whether one exists.

    ``is_keyed``: whether one of them inspects only some routing keys, so that ``for_key`` has to be called. Each call
    ends within the turn. A fault of an interceptor is contained; its ``on_error`` decides what follows.
    """

    __slots__ = (
        "_budget",
        "_by_interceptors",
        "_calls",
        "_context",
        "_exchanges",
        "_has_exchange",
        "_has_failed",
        "_routing_keys",
        "interceptors",
        "is_keyed",
        "times",
    )

    def __init__(
        self, interceptors: Sequence[Interceptor], context: InterceptionContext, has_exchange: Callable[[str], bool]
    ) -> None:
        self.interceptors = tuple(interceptors)
        self._calls: tuple[OnPublish, ...] = tuple([interceptor.on_publish for interceptor in interceptors])
        self._context = context
        self._budget = context.budget
        self.times = CallTimes(
            context.budget, context.faults, context.vhost_name, interceptors, "publish", "on_publish"
        )
        self._has_exchange = has_exchange
        self._exchanges = [_declared(interceptor, "exchanges") for interceptor in interceptors]
        self._routing_keys = [_declared(interceptor, "routing_keys") for interceptor in interceptors]
        self.is_keyed = self._routing_keys != [None] * len(self.interceptors)
        self._by_interceptors: dict[tuple[bool, ...], PublishChain | None] = {}
        self._has_failed = False

    def for_exchange(self, exchange: str) -> "PublishChain | None":
        """Return the chain for the messages of an exchange; ``None`` if no interceptor inspects them.

        The times of an interceptor are counted together.
        """
        return self._inspecting(tuple([names is None or exchange in names for names in self._exchanges]))

    def for_key(self, routing_key: str) -> "PublishChain | None":
        """Return the chain for the messages with a routing key; ``None`` if no interceptor inspects them."""
        if not self.is_keyed:
            return self
        return self._inspecting(tuple([names is None or routing_key in names for names in self._routing_keys]))

    def _inspecting(self, inspects: tuple[bool, ...]) -> "PublishChain | None":
        if all(inspects):
            return self
        if inspects not in self._by_interceptors:
            self._by_interceptors[inspects] = self._part(inspects)
        return self._by_interceptors[inspects]

    def _part(self, inspects: Sequence[bool]) -> "PublishChain | None":
        chosen = [each for each, is_chosen in zip(self.interceptors, inspects, strict=True) if is_chosen]
        if not chosen:
            return None
        part = publish_chain(chosen, self._context, self._has_exchange)
        part.times.part_times = self.times.part_times
        return part

    def intercept(self, message: Message, origin: "Origin") -> Message | Refusal:
        """Return the message to publish, or why it is refused.

        It is the same object if nothing changed. The exchange of a diverted message is another one, which exists.
        """
        times = self.times
        times.until_due -= 1  # ``is_due`` inlined: with this call, an interceptor costs a fifth more where interpreted
        if times.until_due < 0:
            outcome = self._intercept_timed(message, origin)
        else:
            self._budget.suspect = times
            on_publish = self._calls[0]
            try:
                for on_publish in self._calls:
                    answer = on_publish(message, origin)
                    if answer is not message:
                        break
                else:
                    return message  # most interceptors return most messages as they are
                decision = self._valid(answer, message.exchange)
            except BaseException as error:  # a plugin's exception must not reach the publisher
                decision = self._after_fault(self._number_of(on_publish), error, message)
            outcome = self._follow(self._number_of(on_publish), decision, message, origin)
        if isinstance(outcome, Refusal):
            self._context.on_refused(message, origin, outcome.reason)
        return outcome

    def _number_of(self, call: OnPublish) -> int:
        """Return the number of an interceptor by its method; one that is used twice has two bound methods."""
        return next(number for number, each in enumerate(self._calls) if each is call)

    def _intercept_timed(self, message: Message, origin: "Origin") -> Message | Refusal:
        self.times.begin()
        decision = self._follow(0, self._ask(0, message, origin), message, origin)
        self.times.end()
        return decision

    def _follow(self, number: int, decision: "Decision", message: Message, origin: "Origin") -> Message | Refusal:
        """Follow the decision of an interceptor, by its number, and ask those after it."""
        while isinstance(decision, Message):
            message = decision
            number += 1
            if number == len(self._calls):
                return message
            decision = self._ask(number, message, origin)
        if isinstance(decision, Refusal):
            return decision
        return _diverted(message if decision.message is None else decision.message, decision)

    def _ask(self, number: int, message: Message, origin: "Origin") -> "Decision":
        """Return the decision of one interceptor."""
        try:
            decision = self._valid(self._calls[number](message, origin), message.exchange)
        except BaseException as error:  # a plugin's exception must not reach the publisher
            return self._after_fault(number, error, message)
        if self.times.is_timing:
            self.times.called(self.interceptors[number])
        return decision

    def _after_fault(self, number: int, error: BaseException, message: Message) -> Message | Refusal:
        """Contain a fault of an interceptor; return the decision that replaces its own."""
        interceptor = self.interceptors[number]
        self._has_failed = True
        self.times.contain(interceptor, error)
        return message if interceptor.on_error == "pass" else Refusal("the broker could not inspect the message")

    def _valid(self, answer: object, exchange: str) -> "Decision":
        """Return the answer of an interceptor as a decision. :raises BadAnswer: if it is not one."""
        if isinstance(answer, Message):
            if answer.exchange != exchange:
                raise BadAnswer("on_publish() returned a message for another exchange; that needs a Diversion")
            return answer
        if isinstance(answer, Diversion):
            if not self._has_exchange(answer.exchange):
                raise BadAnswer(f"on_publish() diverts to the exchange {shown(answer.exchange)}, which does not exist")
            return answer
        if not isinstance(answer, Refusal):
            raise BadAnswer(f"on_publish() returned {shown(answer)}, not a Message, Refusal or Diversion")
        return answer


class HeaderChain(PublishChain):
    """A chain whose interceptors all decide by the header: their answers for messages that repeat it are kept."""

    __slots__ = ("_decisions",)

    def __init__(
        self, interceptors: Sequence[Interceptor], context: InterceptionContext, has_exchange: Callable[[str], bool]
    ) -> None:
        super().__init__(interceptors, context, has_exchange)
        self._decisions = HeaderDecisions()

    def intercept(self, message: Message, origin: "Origin") -> Message | Refusal:
        """Return the message to publish, or why it is refused, from the kept decisions if possible."""
        published = self._decisions.find(message, origin)
        if published is not None:
            return published
        self._has_failed = False
        outcome = super().intercept(message, origin)
        if isinstance(outcome, Message) and not self._has_failed:
            self._decisions.keep(message, origin, outcome)
        return outcome


def publish_chain(
    interceptors: Sequence[Interceptor], context: InterceptionContext, has_exchange: Callable[[str], bool]
) -> PublishChain:
    """Return the chain of these interceptors."""
    decide_by_header = [getattr(interceptor, "decides_by_header", False) for interceptor in interceptors]
    chain = HeaderChain if all(decide_by_header) else PublishChain
    return chain(interceptors, context, has_exchange)


def _declared(interceptor: Interceptor, what: str) -> frozenset[str] | None:
    """Return the exchanges or the routing keys that an interceptor declares; ``None`` for all."""
    names = getattr(interceptor, what, None)
    return None if names is None else frozenset(names)


def _diverted(message: Message, diversion: Diversion) -> Message:
    """Return the message with its new address, which the keys of ``CC`` and ``BCC`` do not extend."""
    header = message.header
    if header.sender_keys:
        header = header.edited({})
        header.sender_keys = ()
    return message.with_address(diversion.exchange, diversion.routing_key, header)
