"""Authentication, which may wait for somebody else, and authorization, which never does: plugins asked in order."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from gateway.access.permissions import Permissions
from gateway.access.principals import Credentials, Principal
from gateway.kernel.errors import NotAllowed
from gateway.logs import Log

_log: Final = Log("access")


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
    """The authenticators and authorizers of one view, asked in order; the first that knows decides."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        authorizers: Sequence[Authorizer],
        loopback_users: frozenset[str] = frozenset({"guest"}),
    ) -> None:
        self._authenticators = tuple(authenticators)
        self._authorizers = tuple(authorizers)
        self._loopback_users = loopback_users

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer`` once, now or later, with the principal, or with ``None`` when nobody vouches for it."""
        self._ask(0, credentials, answer)

    def enter(self, principal: Principal, vhost: str) -> Permissions:
        """Return what a principal may do in a virtual host. :raises NotAllowed: when it may not enter."""
        for authorizer in self._authorizers:
            if (permissions := authorizer.permissions(principal, vhost)) is not None:
                return permissions
        raise NotAllowed(f"access to vhost '{vhost}' refused for user '{principal.name}'")

    def _ask(self, turn: int, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Ask the authenticator whose turn it is, and on its refusal the next."""
        if turn == len(self._authenticators):
            self._refuse(credentials, "no such user, or wrong password", answer)
            return
        authenticator = self._authenticators[turn]

        def answered(principal: Principal | None) -> None:
            if principal is None:
                self._ask(turn + 1, credentials, answer)
            elif principal.name in self._loopback_users and not credentials.is_loopback:
                self._refuse(credentials, "user can only log in via localhost", answer)
            else:
                answer(principal)

        once = _Once(answered)
        try:
            authenticator.authenticate(credentials, once)
        except Exception:  # a plugin that breaks must neither let anybody in nor leave the client waiting
            _log.error("authenticator failed", exc_info=True, authenticator=type(authenticator).__qualname__)
            once(None)

    def _refuse(self, credentials: Credentials, reason: str, answer: Callable[[Principal | None], None]) -> None:
        _log.warning(
            "authentication refused",
            user=credentials.username,
            mechanism=credentials.mechanism,
            peer=credentials.peer_host,
            reason=reason,
        )
        answer(None)


class _Once:
    """Passes on the first answer and drops the others, which would come from a confused plugin."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Callable[[Principal | None], None]) -> None:
        self._answer: Callable[[Principal | None], None] | None = answer

    def __call__(self, principal: Principal | None) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(principal)
