"""auth-internal: users, passwords and permissions of the internal database."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.api import (
    Authenticator,
    Authorizer,
    Credentials,
    Directory,
    PasswordCheck,
    Permissions,
    Principal,
    TopicPatterns,
    UserRecord,
    hookimpl,
)

PASSWORD_MECHANISMS: Final = frozenset({"PLAIN", "AMQPLAIN"})


NAME: Final = "auth-internal"


def internal_principal(user: UserRecord) -> Principal:
    """Return the principal of a user of the internal database, which holds its permissions."""
    return Principal(user.name, frozenset(map(str, user.tags)), accepted_by=NAME)


class InternalAuthenticator:
    """Authenticates users by name and password. A user without a password cannot log in with an empty one."""

    def __init__(self, directory: Directory, passwords: PasswordCheck) -> None:
        self._directory = directory
        self._passwords = passwords

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer``: at once for a cached result or a fast hash, else after a thread has checked the password."""
        if credentials.mechanism not in PASSWORD_MECHANISMS:
            answer(None)
            return
        user = self._directory.user(credentials.username)
        self._passwords.verify(
            credentials.password, credentials.username, user, lambda right: answer(self._principal(user, right))
        )

    def _principal(self, user: UserRecord | None, is_right: bool) -> Principal | None:
        """Return the principal; ``None`` also if the password was changed during the check."""
        if user is None or not is_right:
            return None
        known = self._directory.user(user.name)
        if known is None or known.password_hash != user.password_hash:
            return None
        return internal_principal(known)


class InternalAuthorizer:
    """Authorizes users of the internal database; all connections share a snapshot until a permission changes."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._snapshot_by_key: dict[tuple[str, str], Permissions] = {}
        directory.on_change(self._forget)

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return the cached snapshot; ``None`` if the user has no permission here, or its own from the login."""
        if principal.grant is not None:
            return None
        key = (vhost, principal.name)
        snapshot = self._snapshot_by_key.get(key) or self._take_snapshot(vhost, principal.name)
        if snapshot is not None:
            self._snapshot_by_key[key] = snapshot
        return snapshot

    def _take_snapshot(self, vhost: str, user: str) -> Permissions | None:
        record = self._directory.permission(vhost, user)
        if record is None:
            return None
        usable = self._directory.usable
        topics = {
            topic.exchange: TopicPatterns(usable(topic.write), usable(topic.read))
            for topic in self._directory.topic_permissions_of(vhost, user)
        }
        return Permissions(user, vhost, usable(record.configure), usable(record.write), usable(record.read), topics)

    def _forget(self, user: str) -> None:
        for key in [key for key in self._snapshot_by_key if key[1] == user]:
            del self._snapshot_by_key[key]


@hookimpl
def gateway_authenticators(directory: Directory, passwords: PasswordCheck) -> Sequence[Authenticator]:
    """Offer the password authenticator."""
    return [InternalAuthenticator(directory, passwords)]


@hookimpl
def gateway_authorizers(directory: Directory) -> Sequence[Authorizer]:
    """Offer the authorizer of the internal database."""
    return [InternalAuthorizer(directory)]
