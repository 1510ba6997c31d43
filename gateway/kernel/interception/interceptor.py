"""The interface of interceptors, which plugins implement to inspect and change the messages of one virtual host."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol, TypeAlias

from gateway.kernel.errors import AccessRefused, PreconditionFailed, Refused
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin

OnError: TypeAlias = Literal["refuse", "pass"]
"""What happens to a published message if an interceptor fails: it is refused, or goes on unchanged."""


class RefusalCause(Enum):
    """The cause of a refusal, for protocols whose answers distinguish causes."""

    POLICY = "policy"
    """A rule of the operator forbids this message."""
    PAYLOAD = "payload"
    """The body is not valid."""
    LIMIT = "limit"
    """The publisher sends too much; it may try again later."""
    ACCESS = "access"
    """The publisher may not send this message."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer of an interceptor that refuses a message. The publisher receives the ``reason``."""

    reason: str
    cause: RefusalCause = RefusalCause.POLICY

    def error(self) -> Refused:
        """Return the refusal as an error, for protocols that report it as one."""
        return AccessRefused(self.reason) if self.cause is RefusalCause.ACCESS else PreconditionFailed(self.reason)


@dataclass(frozen=True, slots=True)
class Diversion:
    """The answer of an interceptor that diverts a message to another exchange.

    The default exchange, ``""``, and the name of a queue as ``routing_key`` divert it to that queue. ``message`` is
    what is published there; ``None`` for the message as it was published.
    """

    exchange: str
    routing_key: str
    message: Message | None = None


Decision: TypeAlias = Message | Refusal | Diversion
"""The answer of ``Interceptor.on_publish``."""


class Interceptor(Protocol):
    """Inspects and changes the messages of one virtual host; created per virtual host.

    A plugin derives from this class and overrides one method or both; a method that is not overridden is not called
    and costs nothing. Both are called on the kernel's thread for each message, so they must not wait, and should take
    microseconds: calls that take longer than the budget of a turn (5 ms) are reported with its name.

    ``on_error`` declares what happens to a published message if ``on_publish`` raises an exception or returns
    something else than a ``Decision``. The fault is contained, counted and logged in both cases.
    """

    on_error: OnError = "refuse"

    exchanges: Collection[str] | None = None
    """The exchanges whose messages ``on_publish`` is called for; ``None`` for all.

    Read once, when the interceptor is put to use. Messages for other exchanges cost nothing. ``""`` is the default
    exchange. A client publishes to one exchange; those that are bound to it make no difference.
    """

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message to publish: the same object if it is unchanged, or an ``edited`` copy of it.

        A ``Refusal`` or a ``Diversion`` ends the call: later interceptors do not see the message. An edited copy keeps
        the exchange.

        Called once for each message for one of the ``exchanges``, after the permissions of its publisher were checked
        and before it is routed; in a transaction when it is published, not at the commit. Not called for messages of
        the broker itself: dead letters, copies of tracers, ``$SYS`` topics.
        """
        return message

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        """Return the message to deliver: the same object if it is unchanged, or an ``edited`` copy of it.

        Called for each delivery to a consumer and each message that a client fetches; the message in the queue does
        not change. If it fails, the message is delivered unchanged, whatever ``on_error`` declares.
        """
        return message


def problem_of_interceptor(interceptor: object) -> str | None:
    """Return the fault in the declarations of an interceptor, or ``None``."""
    exchanges = getattr(interceptor, "exchanges", None)
    if exchanges is None:
        return None
    if isinstance(exchanges, str) or not isinstance(exchanges, Collection):
        return f"exchanges must be a set of names, not {exchanges!r}"
    wrong = next((name for name in exchanges if not isinstance(name, str)), None)
    return None if wrong is None else f"exchanges has {wrong!r}, which is not a name"
