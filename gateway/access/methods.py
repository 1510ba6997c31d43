"""Authentication by a dialogue: a method that plugins supply, several turns of bytes, and who it turned out to be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from gateway.access.once import Once
from gateway.access.principals import CertificateSubject, Principal
from gateway.access.throttle import LoginThrottle
from gateway.logs import StructuredLog, masked

_log: Final = StructuredLog("access")


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who wants to be let in, as far as it is known before the dialogue; ``client_id`` is empty where none exists."""

    vhost: str
    client_id: str = ""
    peer_host: str = ""
    certificate: CertificateSubject | None = None


@dataclass(frozen=True, slots=True)
class Challenge:
    """The client's turn: it answers ``data``."""

    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Success:
    """It is this principal. ``data`` goes to the client with the good news."""

    principal: Principal
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """Nobody is let in. ``reason`` is for the log alone; ``data`` goes to the client where the protocol has room.

    ``user`` is who the client claimed to be, as far as it said: failures are counted by address and user.
    """

    reason: str
    data: bytes = field(default=b"", repr=False)
    user: str = ""


Answer: TypeAlias = Challenge | Success | Failure
"""What a method says to what the client said."""


class Dialogue(Protocol):
    """One client's way through a method. It is over with a ``Success``, a ``Failure``, or when the client goes."""

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        """Take what the client said and call ``answer`` once, now or later, on the kernel's thread.

        Called on the kernel's thread; must not block. The first ``data`` came with the request to log in and is empty
        when the client leaves the first word to the server. Later ones answer a ``Challenge`` each; there is never a
        second step before the first was answered. The bytes are whatever a stranger cares to send.
        """
        ...


class AuthenticationMethod(Protocol):
    """Tells who somebody is, in several turns. Supplied by plugins under the name clients ask for."""

    def begin(self, visitor: Visitor) -> Dialogue:
        """Start a dialogue. Called for each login and each re-authentication; must not block."""
        ...


class GuardedDialogue:
    """A plugin's dialogue, held to its promises: one answer to each step, and what breaks lets nobody in."""

    def __init__(
        self,
        name: str,
        method: AuthenticationMethod,
        visitor: Visitor,
        objection: Callable[[Principal, str], str],
        on_fault: Callable[[str, object, BaseException], None],
        throttle: LoginThrottle | None = None,
    ) -> None:
        """Guard what ``method`` begins. ``objection`` says why a principal may not come from a host, if so."""
        self._on_fault = on_fault
        self._throttle = throttle
        self._name = name
        self._method = method
        self._visitor = visitor
        self._objection = objection
        self._dialogue: Dialogue | None = None

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        """Take what the client said and call ``answer`` once, now or later."""
        once = Once[Answer](lambda given: self._throttled(given, answer))
        try:
            if self._dialogue is None:
                self._dialogue = self._method.begin(self._visitor)
            self._dialogue.step(data, once)
        except BaseException as error:  # a plugin that fails must neither let anybody in nor leave the client waiting
            self._on_fault("authentication method", self._method, error)
            once(Failure("the method failed"))

    def _throttled(self, given: Answer, answer: Callable[[Answer], None]) -> None:
        """Hold back how a dialogue ended for as long as a login of its user has to wait now."""
        throttle = self._throttle
        if throttle is None or not isinstance(given, Success | Failure):
            answer(self._judged(given))
            return
        user = given.principal.name if isinstance(given, Success) else given.user
        attempt = throttle.unshared(self._visitor.peer_host, user)

        def admitted(is_admitted: bool) -> None:
            if not is_admitted:
                answer(Failure("too many failed logins"))
                return
            judged = self._judged(given)
            throttle.ended(attempt, isinstance(judged, Success))
            answer(judged)

        throttle.admit(attempt, admitted)

    def _judged(self, given: Answer) -> Answer:
        """Return what is said in fact; a failure is logged."""
        match given:
            case Challenge():
                return given
            case Success(principal):
                objection = self._objection(principal, self._visitor.peer_host)
                return self._failed(Failure(objection), principal.name) if objection else given
            case Failure():
                return self._failed(given, masked(given.user))
            case _:
                return self._failed(Failure(f"the method answered {given!r}"))

    def _failed(self, failure: Failure, user: str = "") -> Failure:
        peer = self._visitor.peer_host
        _log.warning("authentication refused", user=user[:100], mechanism=self._name, peer=peer, reason=failure.reason)
        return failure
