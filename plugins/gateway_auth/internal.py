"""auth-internal: the users, passwords and permissions that the broker keeps itself."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.api import (
    Authenticator,
    Authorizer,
    Credentials,
    Directory,
    Permissions,
    Principal,
    TopicPatterns,
    hookimpl,
    verify_password,
)

PASSWORD_MECHANISMS: Final = frozenset({"PLAIN", "AMQPLAIN"})


class InternalAuthenticator:
    """Knows users by name and password. A user without a password cannot log in with a blank one."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Answer at once: a hash takes microseconds."""
        answer(self._principal(credentials))

    def _principal(self, credentials: Credentials) -> Principal | None:
        user = self._directory.user(credentials.username)
        if user is None or credentials.mechanism not in PASSWORD_MECHANISMS:
            return None
        if not verify_password(credentials.password, user.password_hash, user.hashing_algorithm):
            return None
        return Principal(user.name, frozenset(map(str, user.tags)))


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
def gateway_authenticators(directory: Directory) -> Sequence[Authenticator]:
    """Offer the check of passwords."""
    return [InternalAuthenticator(directory)]


@hookimpl
def gateway_authorizers(directory: Directory) -> Sequence[Authorizer]:
    """Offer the permissions of the internal database."""
    return [InternalAuthorizer(directory)]
