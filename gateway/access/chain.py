"""Authentication, which may wait for somebody else, and authorization, which never does: plugins asked in order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol

from gateway.access.methods import AuthenticationMethod, GuardedDialogue, Visitor
from gateway.access.once import Once
from gateway.access.permissions import Permissions
from gateway.access.principals import Credentials, Principal, is_loopback
from gateway.access.throttle import LoginAttempt, LoginThrottle
from gateway.kernel.errors import NotAllowed
from gateway.kernel.faults import BadAnswer, described, place_of, shown
from gateway.logs import StructuredLog, masked

_log: Final = StructuredLog("access")

EXTERNAL: Final = "EXTERNAL"

#: How much of a user name that a client claims to have goes into the log, in characters.
LONGEST_LOGGED: Final = 100


class Authenticator(Protocol):
    """Tells who somebody is. Supplied by plugins."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer`` once, now or later, on the kernel's thread: the principal, or ``None`` for refused.

        Called on the kernel's thread; must not block. ``None`` also stands for credentials of a kind that this
        authenticator does not judge: the next one is asked.
        """
        ...


class Authorizer(Protocol):
    """Tells what somebody may do. Supplied by plugins."""

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return the permissions at once, from memory; ``None`` to leave the decision to the next authorizer.

        The connection keeps them until the directory changes, or the ``permissions_changed`` of
        ``gateway_authorizers`` is called.
        """
        ...


class Access:
    """The authenticators and authorizers of one view, asked in order; the first that knows decides.

    Its authentication methods are asked by name.
    """

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        authorizers: Sequence[Authorizer],
        loopback_users: frozenset[str] = frozenset({"guest"}),
        methods: Mapping[str, AuthenticationMethod] = MappingProxyType({}),
        on_fault: "Callable[[str, object, BaseException], None] | None" = None,
        *,
        throttle: LoginThrottle | None = None,
        trusts_loopback: bool = True,
        closed: str = "",
    ) -> None:
        """Ask these. ``on_fault`` is called with what was asked of a plugin's object, the object and what it raised.

        ``closed`` is why nobody may enter, if so: a plugin that might have kept somebody out cannot be asked.
        ``trusts_loopback`` is off where a proxy makes every client appear to be on this machine.
        """
        self._authenticators = tuple(authenticators)
        self._authorizers = tuple(authorizers)
        self._loopback_users = loopback_users
        self._methods = methods
        self._on_fault = on_fault or _log_fault
        self._throttle = throttle
        self._trusts_loopback = trusts_loopback
        self._closed = closed

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer`` once, now or later, with the principal, or with ``None`` when it is refused.

        Logins with a password are throttled; nothing is learned from a certificate by trying.
        """
        throttle = self._throttle
        if throttle is None or credentials.mechanism == EXTERNAL:
            self._ask(0, credentials, answer)
            return
        attempt = throttle.attempt_of(credentials)
        throttle.admit(attempt, lambda admitted: self._admitted(admitted, attempt, credentials, answer))

    def retry_after_s(self, credentials: Credentials) -> float:
        """Return how long a login would wait before it is judged: for protocols that can tell the client so."""
        throttle = self._throttle
        return 0.0 if throttle is None else throttle.wait_s(throttle.attempt_of(credentials))

    def recognise(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Ask who a client is that brings no secret, and call ``answer`` once, now or later.

        Logins of anonymous clients begin so: where no authenticator knows the client, that is no failed attempt.
        """
        self._ask(0, credentials, answer, is_attempt=False)

    def converse(self, method: str, visitor: Visitor) -> GuardedDialogue | None:
        """Return a dialogue of the authentication method of this name; ``None`` when no plugin offers it."""
        offered = self._methods.get(method)
        if offered is None:
            return None
        return GuardedDialogue(method, offered, visitor, self._objection, self._on_fault, self._throttle)

    def is_local(self, peer_host: str) -> bool:
        """Whether a client is on this machine, as far as can be told."""
        return self._trusts_loopback and is_loopback(peer_host)

    def anonymous(self, user: str, peer_host: str) -> Principal | None:
        """Return who a client counts as that says nothing of itself, or ``None`` where that user may not come from.

        ``user`` is the operator's choice, never the client's, so no authenticator is asked, and none can be led to let
        in a user without a password. The principal has no tags. What it may do, ``enter`` tells as for everybody.
        """
        principal = Principal(user)
        if objection := self._objection(principal, peer_host):
            self._log_refusal(Credentials("ANONYMOUS", user, peer_host=peer_host), objection)
            return None
        return principal

    def enter(self, principal: Principal, vhost: str) -> Permissions:
        """Return what a principal may do in a virtual host. :raises NotAllowed: when it may not enter."""
        if self._closed:
            raise NotAllowed(f"access to vhost '{vhost}' refused for user '{principal.name}': {self._closed}")
        for authorizer in self._authorizers:
            permissions = self._permissions_by(authorizer, principal, vhost)
            if permissions is not None:
                return permissions
        raise NotAllowed(f"access to vhost '{vhost}' refused for user '{principal.name}'")

    def _permissions_by(self, authorizer: Authorizer, principal: Principal, vhost: str) -> Permissions | None:
        """Ask an authorizer. :raises NotAllowed: when it fails: whom it would have kept out must not come in."""
        try:
            permissions = authorizer.permissions(principal, vhost)
            if permissions is None or isinstance(permissions, Permissions):
                return permissions
            raise BadAnswer(f"permissions() returned {shown(permissions)}, which is no Permissions")
        except BaseException as error:  # foreign code: nobody is let in by a plugin that fails
            self._on_fault("authorizer", authorizer, error)
        raise NotAllowed(f"access to vhost '{vhost}' refused for user '{principal.name}'")

    def _admitted(
        self,
        admitted: bool,
        attempt: LoginAttempt,
        credentials: Credentials,
        answer: Callable[[Principal | None], None],
    ) -> None:
        """Judge an attempt that was admitted, and tell the throttle how it ended; refuse any other unjudged."""
        if not admitted:
            answer(None)
            return
        throttle = self._throttle
        assert throttle is not None

        def judged(principal: Principal | None) -> None:
            throttle.ended(attempt, principal is not None)
            answer(principal)

        self._ask(0, credentials, judged)

    def _ask(
        self,
        turn: int,
        credentials: Credentials,
        answer: Callable[[Principal | None], None],
        *,
        is_attempt: bool = True,
    ) -> None:
        """Ask the authenticator whose turn it is, and on its refusal the next."""
        if turn == len(self._authenticators):
            if is_attempt:
                claimed = replace(credentials, username=masked(credentials.username))  # it may be a password
                self._log_refusal(claimed, "no such user, or wrong password")
            answer(None)
            return
        authenticator = self._authenticators[turn]

        def answered(principal: Principal | None) -> None:
            if principal is None:
                self._ask(turn + 1, credentials, answer, is_attempt=is_attempt)
            elif not isinstance(principal, Principal):
                wrong = BadAnswer(f"the authenticator answered {shown(principal)}, which is no Principal")
                self._on_fault("authenticator", authenticator, wrong)
                self._log_refusal(credentials, "the authenticator failed")
                answer(None)
            elif objection := self._objection(principal, credentials.peer_host):
                self._log_refusal(credentials, objection)
                answer(None)
            else:
                answer(principal)

        def failed(error: BaseException) -> None:
            self._on_fault("authenticator", authenticator, error)
            once(None)

        once = Once(answered)
        try:
            pending: object = authenticator.authenticate(credentials, once)  # type: ignore[func-returns-value]
        except BaseException as error:  # a plugin that fails must neither let anybody in nor leave the client waiting
            failed(error)
            return
        if callable(add_errback := getattr(pending, "addErrback", None)):  # a Deferred may fail later
            add_errback(lambda failure: failed(failure.value))

    def _objection(self, principal: Principal, peer_host: str) -> str:
        """Return why a principal may not come from there; empty when it may."""
        is_here = self.is_local(peer_host)
        if principal.name in self._loopback_users and not is_here:
            return "user can only log in via localhost"
        return ""

    def _log_refusal(self, credentials: Credentials, reason: str) -> None:
        _log.warning(
            "authentication refused",
            user=credentials.username[:LONGEST_LOGGED],
            mechanism=credentials.mechanism,
            peer=credentials.peer_host,
            reason=reason,
        )


def _log_fault(kind: str, part: object, error: BaseException) -> None:
    """Write a line where nothing counts faults."""
    _log.error(f"{kind} failed: {described(error)}", part=type(part).__qualname__, place=place_of(error))
