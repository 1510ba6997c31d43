"""Authentication, which may be asynchronous, and authorization, which is synchronous, by plugins in order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from gateway.access.authorities import Authenticator, Authorizer
from gateway.access.call_times import AccessCalls
from gateway.access.methods import AuthenticationMethod, GuardedDialogue, Visitor
from gateway.access.permissions import Permissions
from gateway.access.principals import Credentials, Principal, is_loopback, is_principal
from gateway.access.throttle import LoginAttempt, LoginThrottle
from gateway.access.unknown import PermissionUnknown
from gateway.kernel.errors import NotAllowed
from gateway.kernel.faults import BadAnswer, described, place_of, shown
from gateway.logs import StructuredLog, masked

_log: Final = StructuredLog("access")

EXTERNAL: Final = "EXTERNAL"

#: The length to which claimed user names are cut in the log, in characters.
LONGEST_LOGGED: Final = 100


class Access:
    """The authenticators, authorizers and authentication methods of one virtual host.

    Authenticators and authorizers are called in order; the first result decides. If the plugin that accepted a login
    has authorizers, only these are called, and those of plugins without authenticators.
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
        plugin_of: Callable[[object], str] = lambda part: "",
        calls: AccessCalls | None = None,
    ) -> None:
        """Set up the chain. ``on_fault`` is called with the kind of a plugin's object, the object and its exception.

        ``closed`` is a reason to refuse all access: an access plugin cannot be used. ``trusts_loopback`` must be off
        behind a proxy, which makes every client appear local. ``plugin_of`` returns the plugin of an object. ``calls``
        measures the calls of the authenticators and authorizers.
        """
        self._authenticators = tuple(authenticators)
        self._authorizers = tuple(authorizers)
        self._plugin_of = plugin_of
        self._authorizers_by_plugin = _by_plugin(self._authenticators, self._authorizers, plugin_of)
        self._loopback_users = loopback_users
        self._methods = methods
        self._on_fault = on_fault or _log_fault
        self._throttle = throttle
        self._trusts_loopback = trusts_loopback
        self._closed = closed
        self.calls = calls

    def adopt(self, other: "Access") -> None:
        """Replace the authenticators, authorizers and methods by those of another access; logins in progress go on."""
        self._authenticators = other._authenticators
        self._authorizers = other._authorizers
        self._plugin_of = other._plugin_of
        self._authorizers_by_plugin = other._authorizers_by_plugin
        self._methods = other._methods
        self._closed = other._closed
        self.calls = other.calls

    def forget(self) -> None:
        """Drop the answers of other servers that plugins keep, so that they are asked again."""
        _call_each("forget", (*self._authenticators, *self._authorizers))

    def permissions_changed(self) -> None:
        """Drop kept permissions: a plugin has reported that some changed."""
        _call_each("permissions_changed", self._authorizers)

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer`` once, now or later, with the principal, or with ``None`` if it is refused.

        Password logins are throttled; certificate logins are not, because certificates cannot be guessed.
        """
        throttle = self._throttle
        if throttle is None or credentials.mechanism == EXTERNAL:
            self._ask(self._authenticators, credentials, answer)
            return
        attempt = throttle.attempt_of(credentials)
        throttle.admit(attempt, lambda admitted: self._admitted(admitted, attempt, credentials, answer))

    def retry_after_s(self, credentials: Credentials) -> float:
        """Return the delay before a login is checked, in seconds, for protocols that can report it to the client."""
        throttle = self._throttle
        return 0.0 if throttle is None else throttle.wait_s(throttle.attempt_of(credentials))

    def identify(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Identify a client without a secret, and call ``answer`` once, now or later.

        It is the first step of an anonymous login, so an unknown client is not a failed attempt.
        """
        self._ask(self._authenticators, credentials, answer, is_attempt=False)

    def start_dialogue(self, method: str, visitor: Visitor) -> GuardedDialogue | None:
        """Start an dialogue of the named authentication method; return ``None`` if no plugin offers it."""
        offered = self._methods.get(method)
        if offered is None:
            return None
        plugin = self._plugin_of(offered)
        return GuardedDialogue(method, offered, visitor, self._objection, self._on_fault, self._throttle, plugin)

    def is_local(self, peer_host: str) -> bool:
        """Whether a client is on this machine, as far as its address shows."""
        return self._trusts_loopback and is_loopback(peer_host)

    def anonymous(self, user: str, peer_host: str) -> Principal | None:
        """Return the principal of an anonymous client; ``None`` if that user may not connect from ``peer_host``.

        ``user`` is the operator's setting, so no authenticator is called. The principal has no tags; its permissions
        come from ``enter`` as usual.
        """
        principal = Principal(user)
        if objection := self._objection(principal, peer_host):
            self._log_refusal(Credentials("ANONYMOUS", user, peer_host=peer_host), objection)
            return None
        return principal

    def enter(self, principal: Principal, vhost: str) -> Permissions:
        """Return a principal's permissions in a virtual host.

        :raises NotAllowed: if it has no access; ``PermissionUnknown`` if an authorizer awaits the answer of a server.
        """
        if self._closed:
            raise NotAllowed(f"access to vhost '{vhost}' refused for user '{principal.name}': {self._closed}")
        for authorizer in self._authorizers_by_plugin.get(principal.accepted_by, self._authorizers):
            permissions = self._permissions_by(authorizer, principal, vhost)
            if permissions is not None:
                return permissions
        raise NotAllowed(f"access to vhost '{vhost}' refused for user '{principal.name}'")

    def _permissions_by(self, authorizer: Authorizer, principal: Principal, vhost: str) -> Permissions | None:
        """Call an authorizer. :raises NotAllowed: if it fails, because it might have refused access."""
        try:
            calls = self.calls
            permissions: object = (  # a plugin may answer anything
                authorizer.permissions(principal, vhost)
                if calls is None
                else calls.permissions(authorizer, principal, vhost)
            )
            if permissions is None or isinstance(permissions, Permissions):
                return permissions
            raise BadAnswer(f"permissions() returned {shown(permissions)}, expected Permissions")
        except PermissionUnknown:
            raise
        except BaseException as error:  # a failing plugin must not grant access
            self._on_fault("authorizer", authorizer, error)
        raise NotAllowed(f"access to vhost '{vhost}' refused for user '{principal.name}'")

    def _admitted(
        self,
        admitted: bool,
        attempt: LoginAttempt,
        credentials: Credentials,
        answer: Callable[[Principal | None], None],
    ) -> None:
        """Authenticate an admitted attempt and report the result to the throttle; refuse one that was not admitted."""
        if not admitted:
            answer(None)
            return
        throttle = self._throttle
        assert throttle is not None

        def judged(principal: Principal | None) -> None:
            throttle.ended(attempt, principal is not None)
            answer(principal)

        self._ask(self._authenticators, credentials, judged)

    def _ask(
        self,
        authenticators: tuple[Authenticator, ...],
        credentials: Credentials,
        answer: Callable[[Principal | None], None],
        *,
        is_attempt: bool = True,
    ) -> None:
        """Call the authenticators in order, until one accepts."""
        if not authenticators:
            if is_attempt:
                # clients may send a password as user name
                claimed = replace(credentials, username=masked(credentials.username))
                self._log_refusal(claimed, "no such user, or wrong password")
            answer(None)
            return
        authenticator, asked = authenticators[0], _Asked(self, authenticators, credentials, answer, is_attempt)
        try:
            calls = self.calls
            pending: object = (
                authenticator.authenticate(credentials, asked)
                if calls is None
                else calls.authenticate(authenticator, credentials, asked)
            )
        except BaseException as error:  # a failing plugin must refuse the login, not hang it
            asked.fail(error)
            return
        if pending is not None and callable(add_errback := getattr(pending, "addErrback", None)):
            add_errback(lambda failure: asked.fail(failure.value))  # a Deferred may fail later

    def answered(
        self,
        principal: object,
        authenticators: tuple[Authenticator, ...],
        credentials: Credentials,
        answer: Callable[[Principal | None], None],
        is_attempt: bool,
    ) -> None:
        """Act on the answer of the first of these authenticators, which is the only one: refused, the next is asked.

        The answer should be a principal or ``None``; a plugin may answer anything.
        """
        if principal is None:
            self._ask(authenticators[1:], credentials, answer, is_attempt=is_attempt)
        else:
            answer(self._accepted(principal, authenticators[0], credentials))

    def failed(self, authenticator: Authenticator, error: BaseException) -> None:
        """Report an authenticator that raised."""
        self._on_fault("authenticator", authenticator, error)

    def _accepted(self, principal: object, authenticator: Authenticator, credentials: Credentials) -> Principal | None:
        """Return the principal that an authenticator accepted, with its plugin; ``None`` if it may not log in."""
        if is_principal(principal):
            if objection := self._objection(principal, credentials.peer_host):
                self._log_refusal(credentials, objection)
                return None
            return principal if principal.has_plugin else replace(principal, accepted_by=self._plugin_of(authenticator))
        wrong = BadAnswer(f"the authenticator answered {shown(principal)}, expected a Principal")
        self._on_fault("authenticator", authenticator, wrong)
        self._log_refusal(credentials, "the authenticator failed")
        return None

    def _objection(self, principal: Principal, peer_host: str) -> str:
        """Return why a principal may not connect from this host; empty if it may."""
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


class _Asked:
    """The callback that an authenticator gets: its first answer counts, further ones are ignored."""

    __slots__ = ("_access", "_answer", "_authenticators", "_credentials", "_is_attempt", "_is_over")

    def __init__(
        self,
        access: Access,
        authenticators: tuple[Authenticator, ...],
        credentials: Credentials,
        answer: Callable[[Principal | None], None],
        is_attempt: bool,
    ) -> None:
        self._access = access
        self._authenticators = authenticators
        self._credentials = credentials
        self._answer = answer
        self._is_attempt = is_attempt
        self._is_over = False

    def __call__(self, principal: object) -> None:
        """Answer the login, or ask the next authenticator."""
        if not self._is_over:
            self._is_over = True
            self._access.answered(principal, self._authenticators, self._credentials, self._answer, self._is_attempt)

    def fail(self, error: BaseException) -> None:
        """Report that the authenticator raised; that refuses the login unless it has answered before."""
        self._access.failed(self._authenticators[0], error)
        self(None)


def _by_plugin(
    authenticators: Sequence[Authenticator], authorizers: Sequence[Authorizer], plugin_of: Callable[[object], str]
) -> Mapping[str, tuple[Authorizer, ...]]:
    """Return the authorizers of the users of each plugin that has both: its own, and those without authenticators."""
    accepting = {plugin_of(each) for each in authenticators}
    owned = [(plugin_of(each), each) for each in authorizers]
    return {
        plugin: tuple(each for owner, each in owned if owner == plugin or owner not in accepting)
        for plugin in accepting & {owner for owner, _ in owned}
    }


def _call_each(method: str, parts: Iterable[object]) -> None:
    """Call a method of the plugins' objects that have it."""
    for part in parts:
        if callable(call := getattr(part, method, None)):
            call()


def _log_fault(kind: str, part: object, error: BaseException) -> None:
    """Log a plugin's fault, if no fault counter is given."""
    _log.error(f"{kind} failed: {described(error)}", part=type(part).__qualname__, place=place_of(error))
