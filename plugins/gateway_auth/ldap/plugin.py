"""auth-ldap: logins by binding to an LDAP server, and permissions by queries about the user.

Requests to the server run in threads of this plugin. Permissions are asked for when a connection first needs them, and
kept for ``cache_ttl_s``; a request that needs one waits for it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gateway.api import Authenticator, Authorizer, Credentials, PluginSettings, Principal, StructuredLog, hookimpl
from gateway_auth.asked.authorizer import AskedAuthorizer
from gateway_auth.asked.questions import Question, Verdict
from gateway_auth.asked.verdicts import Verdicts
from gateway_auth.ldap.settings import LdapSettings

if TYPE_CHECKING:
    from gateway_auth.ldap.directory import LdapDirectory

_log: Final = StructuredLog("access")

#: The most requests that wait for a thread; others fail at once.
MOST_WAITING: Final = 1000

T = TypeVar("T")


class LdapThreads:
    """Runs requests in at most ``threads`` threads."""

    def __init__(self, reactor: Any, threads: int) -> None:
        self._reactor = reactor
        self._most = threads + MOST_WAITING
        self._unfinished = 0
        self._is_closed = False
        self._pool = ThreadPoolExecutor(threads, "auth-ldap")

    def run(self, work: Callable[[], T], answer: Callable[[T | None], None]) -> None:
        """Run ``work``, then call ``answer`` with its result; with ``None`` after an error was logged."""
        if self._is_closed or self._unfinished >= self._most:
            reason = "the plugin is being replaced" if self._is_closed else "too many requests wait for it"
            _log.warning("access server gave no answer", server="auth-ldap", reason=reason)
            answer(None)
            return
        self._unfinished += 1

        def finished(future: "Future[T]") -> None:
            self._reactor.callFromThread(self._finish, future, answer)

        self._pool.submit(work).add_done_callback(finished)

    def close(self) -> None:
        """End the threads after their current requests; those that wait for a thread get no answer."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _finish(self, future: "Future[T]", answer: Callable[[T | None], None]) -> None:
        self._unfinished -= 1
        error = None if future.cancelled() else future.exception()
        if error is not None:
            reason = f"{type(error).__name__}: {error}"
            _log.warning("access server gave no answer", server="auth-ldap", reason=reason[:200])
        answer(None if future.cancelled() or error is not None else future.result())


class LdapAuthenticator:
    """Authenticates users by a bind with their password."""

    def __init__(self, directory: "LdapDirectory", vhost: str, threads: LdapThreads) -> None:
        self._directory = directory
        self._vhost = vhost
        self._threads = threads

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer`` when a thread has asked the server; at once for other mechanisms and empty passwords."""
        user, password = credentials.username, credentials.password
        if credentials.mechanism not in ("PLAIN", "AMQPLAIN") or not user or not password:
            answer(None)
            return
        self._threads.run(lambda: self._directory.log_in(user, password, self._vhost), answer)


def _reactor() -> Any:
    from twisted.internet import reactor  # the broker chooses the reactor before its plugins start

    return reactor


def _directory(settings: LdapSettings) -> "LdapDirectory":
    from gateway_auth.ldap.directory import LdapDirectory  # ldap3 is loaded only where it is used

    return LdapDirectory(settings)


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the settings."""
    return LdapSettings


@hookimpl
def gateway_authenticators(vhost: str, settings: LdapSettings) -> Sequence[Authenticator]:
    """Offer the authenticator of the directory's users."""
    if not settings.logins:
        return []
    return [LdapAuthenticator(_directory(settings), vhost, LdapThreads(_reactor(), settings.threads))]


@hookimpl
def gateway_authorizers(permissions_changed: Callable[[], None], settings: LdapSettings) -> Sequence[Authorizer]:
    """Offer the authorizer that asks the queries."""
    if not settings.permissions:
        return []
    reactor = _reactor()
    directory, threads = _directory(settings), LdapThreads(reactor, settings.threads)

    def ask(question: Question, answer: Callable[[Verdict], None]) -> None:
        threads.run(lambda: directory.allows(question), answer)

    verdicts = Verdicts(ask, reactor, settings.cache_ttl_s, permissions_changed)
    return [AskedAuthorizer(verdicts, has_topics=settings.topic_access_query != "true", disconnect=threads.close)]
