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

    routing_keys: Collection[str] | None = None
    """The routing keys of the messages that ``on_publish`` is called for; ``None`` for all.

    Read once, as ``exchanges``. They are compared as they are, without wildcards, with the key of the publish; further
    keys in ``CC`` and ``BCC`` make no difference. A topic of MQTT is the key that it becomes.
    """

    decides_by_header: bool = False
    """Whether the answer of ``on_publish`` depends on the exchange, the routing key, headers, properties and the
    origin alone: not on the body, the time, earlier messages or anything else that changes. It then changes neither
    body nor routing key.

    If all interceptors of a message declare this, the broker reuses their answers for messages that repeat these, as
    most do, and calls them for the others. Read once, as ``exchanges``.
    """

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message to publish: the same object if it is unchanged, or an ``edited`` copy of it.

        A ``Refusal`` or a ``Diversion`` ends the call: later interceptors do not see the message. An edited copy keeps
        the exchange.

        Called once for each message for one of the ``exchanges`` with one of the ``routing_keys``, after its
        publisher's permissions were checked and before it is routed; in a transaction when it is published, not at the
        commit. Not called for messages of the broker itself: dead letters, copies of tracers, ``$SYS`` topics.
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
    decides_by_header = getattr(interceptor, "decides_by_header", False)
    if not isinstance(decides_by_header, bool):
        return f"decides_by_header must be true or false, not {decides_by_header!r}"
    problems = (_problem_of_names(interceptor, declared) for declared in ("exchanges", "routing_keys"))
    return next((problem for problem in problems if problem is not None), None)


def _problem_of_names(interceptor: object, declared: str) -> str | None:
    names = getattr(interceptor, declared, None)
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Collection):
        return f"{declared} must be a set of names, not {names!r}"
    wrong = next((name for name in names if not isinstance(name, str)), None)
    return None if wrong is None else f"{declared} has {wrong!r}, which is not a name"
