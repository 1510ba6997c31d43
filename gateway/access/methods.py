"""Challenge-response authentication: the contract of methods from plugins, and a guard around them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias

from gateway.access.once import Once
from gateway.access.principals import CertificateSubject, Principal, is_principal
from gateway.access.throttle import LoginThrottle
from gateway.logs import StructuredLog, masked

_log: Final = StructuredLog("access")


@dataclass(frozen=True, slots=True)
class Visitor:
    """The data known of a client before the dialogue; ``client_id`` is empty in protocols without one."""

    vhost: str
    client_id: str = ""
    peer_host: str = ""
    certificate: CertificateSubject | None = None


@dataclass(frozen=True, slots=True)
class Challenge:
    """Data for the client, which must answer it."""

    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Success:
    """The client is authenticated. ``data`` is sent with the success."""

    principal: Principal
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """The client is refused. ``reason`` is for the log only; ``data`` is sent if the protocol can carry it.

    ``user`` is the claimed user name, if known: failures are counted by address and user.
    """

    reason: str
    data: bytes = field(default=b"", repr=False)
    user: str = ""


Answer: TypeAlias = Challenge | Success | Failure
"""A method's result for one step."""


class Dialogue(Protocol):
    """One client's dialogue of a method. It ends with ``Success``, ``Failure`` or the connection."""

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        """Handle the client's data and call ``answer`` once, now or later, on the kernel's thread.

        Called on the kernel's thread; must not block. The first ``data`` arrives with the login request and is empty if
        the client lets the server start. Each later one answers a ``Challenge``. The next step is called only after the
        previous answer. The data is not trusted.
        """
        ...


class AuthenticationMethod(Protocol):
    """Authenticates clients in several steps. Supplied by plugins under the name that clients request."""

    def begin(self, visitor: Visitor) -> Dialogue:
        """Start a dialogue. Called for each login and each re-authentication; must not block."""
        ...


class GuardedDialogue:
    """A plugin's dialogue with guarantees: one answer to each step, and an exception refuses the login."""

    def __init__(
        self,
        name: str,
        method: AuthenticationMethod,
        visitor: Visitor,
        objection: Callable[[Principal, str], str],
        on_fault: Callable[[str, object, BaseException], None],
        throttle: LoginThrottle | None = None,
        plugin: str = "",
    ) -> None:
        """Guard the dialogues of ``method``, which ``plugin`` supplies.

        ``objection`` returns why a principal may not connect from a host.
        """
        self._on_fault = on_fault
        self._throttle = throttle
        self._plugin = plugin
        self._name = name
        self._method = method
        self._visitor = visitor
        self._objection = objection
        self._dialogue: Dialogue | None = None

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        """Handle the client's data and call ``answer`` once, now or later."""
        once = Once[Answer](lambda given: self._throttled(given, answer))
        try:
            if self._dialogue is None:
                self._dialogue = self._method.begin(self._visitor)
            self._dialogue.step(data, once)
        except BaseException as error:  # a failing plugin must refuse the login, not hang it
            self._on_fault("authentication method", self._method, error)
            once(Failure("the method failed"))

    def _throttled(self, given: Answer, answer: Callable[[Answer], None]) -> None:
        """Delay the final result for as long as a login of its user must wait now."""
        if isinstance(given, Success) and not is_principal(given.principal):
            given = Failure(f"the method answered {given!r}")
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
        """Return the effective result; log a failure."""
        match given:
            case Challenge():
                return given
            case Success(principal):
                if objection := self._objection(principal, self._visitor.peer_host):
                    return self._failed(Failure(objection), principal.name)
                accepted_by = principal.accepted_by or self._plugin
                return replace(given, principal=replace(principal, accepted_by=accepted_by))
            case Failure():
                return self._failed(given, masked(given.user))
            case _:
                return self._failed(Failure(f"the method answered {given!r}"))

    def _failed(self, failure: Failure, user: str = "") -> Failure:
        peer = self._visitor.peer_host
        _log.warning("authentication refused", user=user[:100], mechanism=self._name, peer=peer, reason=failure.reason)
        return failure
