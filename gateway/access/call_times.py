"""The times of the calls of authenticators and authorizers on the kernel's thread, and reports of long ones."""

from collections.abc import Callable, Iterator, Sequence

from gateway.access.authorities import Authenticator, Authorizer
from gateway.access.principals import Credentials, Principal
from gateway.kernel.budget import SLOW_S
from gateway.kernel.plugin_times import CallTime, PartTimes
from gateway.kernel.slow_calls import SlowCalls


class AccessCalls:
    """Calls the authenticators and authorizers of one virtual host, and measures the calls.

    What they do in threads, or wait for, is not part of a call.
    """

    def __init__(
        self,
        slow_calls: SlowCalls,
        vhost: str,
        authenticators: Sequence[Authenticator],
        authorizers: Sequence[Authorizer],
    ) -> None:
        self._slow_calls = slow_calls
        self._monotonic_s = slow_calls.budget.monotonic_s
        self._vhost = vhost
        self._logins = PartTimes(authenticators)
        self._permissions = PartTimes(authorizers)

    def times(self) -> Iterator[tuple[object, str, CallTime]]:
        """Yield the objects with the method that is called and its times."""
        for part, time in self._logins:
            yield part, "authenticate", time
        for part, time in self._permissions:
            yield part, "permissions", time

    def authenticate(
        self,
        authenticator: Authenticator,
        credentials: Credentials,
        answer: Callable[[object], None],
    ) -> object:
        """Call an authenticator. An answer within the call ends the measured time: what follows is not its work.

        The answer should be a principal or ``None``, but may be of a wrong type.
        """
        starts_s = self._monotonic_s()
        ends_s: list[float] = []

        def answered(principal: object) -> None:
            ends_s.append(self._monotonic_s())
            answer(principal)

        try:
            return authenticator.authenticate(credentials, answered)
        finally:
            seconds = (ends_s[0] if ends_s else self._monotonic_s()) - starts_s
            self._logins.of(authenticator).add(seconds)
            if seconds > SLOW_S:
                what = f"the authenticator {type(authenticator).__qualname__}"
                function = authenticator.authenticate
                self._slow_calls.took(seconds, what, self._vhost, authenticator, "authenticator", function)

    def permissions(self, authorizer: Authorizer, principal: Principal, vhost: str) -> object:
        """Call an authorizer; return its answer, which may be of a wrong type."""
        starts_s = self._monotonic_s()
        try:
            return authorizer.permissions(principal, vhost)
        finally:
            seconds = self._monotonic_s() - starts_s
            self._permissions.of(authorizer).add(seconds)
            if seconds > SLOW_S:
                what = f"the authorizer {type(authorizer).__qualname__}"
                self._slow_calls.took(seconds, what, self._vhost, authorizer, "authorizer", authorizer.permissions)
