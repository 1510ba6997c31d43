"""auth-internal: the users, passwords and permissions that the broker keeps itself."""

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


class InternalAuthenticator:
    """Knows users by name and password. A user without a password cannot log in with a blank one."""

    def __init__(self, directory: Directory, passwords: PasswordCheck) -> None:
        self._directory = directory
        self._passwords = passwords

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Answer at once where the password was right lately or has a fast hash, else when a thread has checked it."""
        if credentials.mechanism not in PASSWORD_MECHANISMS:
            answer(None)
            return
        user = self._directory.user(credentials.username)
        self._passwords.verify(
            credentials.password, credentials.username, user, lambda right: answer(self._principal(user, right))
        )

    def _principal(self, user: UserRecord | None, is_right: bool) -> Principal | None:
        """Return the principal; ``None`` also when the password was changed while it was checked."""
        if user is None or not is_right:
            return None
        known = self._directory.user(user.name)
        if known is None or known.password_hash != user.password_hash:
            return None
        return Principal(known.name, frozenset(map(str, known.tags)))


class InternalAuthorizer:
    """Knows what users of the internal database may do; a snapshot serves all connections until something changes."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._snapshot_by_key: dict[tuple[str, str], Permissions] = {}
        directory.on_change(self._forget)

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return the snapshot, made on first use; ``None`` for whoever has no permission in the virtual host."""
        key = (vhost, principal.name)
        snapshot = self._snapshot_by_key.get(key) or self._taken(vhost, principal.name)
        if snapshot is not None:
            self._snapshot_by_key[key] = snapshot
        return snapshot

    def _taken(self, vhost: str, user: str) -> Permissions | None:
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
    """Offer the check of passwords."""
    return [InternalAuthenticator(directory, passwords)]


@hookimpl
def gateway_authorizers(directory: Directory) -> Sequence[Authorizer]:
    """Offer the permissions of the internal database."""
    return [InternalAuthorizer(directory)]
