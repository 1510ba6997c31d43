"""The users of the internal database, their permissions, and the secrets for checking them.

The kernel stores them beside the topology. ``gateway.access`` and plugins check passwords and permissions. State
changes only through ``apply``, both live and in recovery.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MethodType
from typing import TypeAlias
from weakref import WeakMethod

from gateway.kernel.broker.entity_checks import require_valid_user
from gateway.kernel.clock import drained
from gateway.kernel.errors import NotFound, PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Change, Put, Removed
from gateway.kernel.journal.entity_codec import writable
from gateway.kernel.journal.records.access import PermissionRecord, SecretRecord, TopicPermissionRecord, UserRecord
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.messages.bounds import require_name
from gateway.kernel.messages.message import Value
from gateway.kernel.patterns import Compile

_AnyPermission: TypeAlias = PermissionRecord | TopicPermissionRecord

Listener = Callable[[str], None]
"""Called with the name of a user whose tags, password or permissions changed."""


class Directory:
    """Owns users, permissions, topic permissions and secrets; records each change, then calls the listeners.

    ``emit`` is called with an event for each change of a user or a permission. ``run`` runs the steps of a job.
    ``is_copy``: the leader of another cell of a cluster changes it, and all changes come by ``apply``.
    """

    def __init__(self, record: Callable[[Change], None], compile_pattern: Compile) -> None:
        self._record = record
        self._compile_pattern = compile_pattern
        self.is_copy = False
        self._listeners: list[Callable[[], Listener | None]] = []
        self.emit: Callable[[Event], None] = lambda event: None
        self.run: Callable[[Iterator[None]], None] = _run_at_once
        self._user_by_name: dict[str, UserRecord] = {}
        self._permission_by_key: dict[tuple[Value, ...], PermissionRecord] = {}
        self._topic_permission_by_key: dict[tuple[Value, ...], TopicPermissionRecord] = {}
        self._permissions_by_user: dict[str, dict[Removed, _AnyPermission]] = {}
        self._removed_users: set[str] = set()  # those whose permissions are not removed yet
        self._secrets: dict[str, SecretRecord] = {}

    # Lookup

    @property
    def user_by_name(self) -> Mapping[str, UserRecord]:
        """Every user."""
        return self._user_by_name

    @property
    def permissions(self) -> Collection[PermissionRecord]:
        """Every permission."""
        return self._permission_by_key.values()

    @property
    def topic_permissions(self) -> Collection[TopicPermissionRecord]:
        """Every topic permission."""
        return self._topic_permission_by_key.values()

    def user(self, name: str) -> UserRecord | None:
        """Return the user of this name."""
        return self._user_by_name.get(name)

    def permission(self, vhost: str, user: str) -> PermissionRecord | None:
        """Return a user's permission for a virtual host; ``None`` when access to it is denied."""
        return None if user in self._removed_users else self._permission_by_key.get((vhost, user))

    def topic_permissions_of(self, vhost: str, user: str) -> list[TopicPermissionRecord]:
        """Return a user's topic permissions in a virtual host; without any, all routing keys are allowed."""
        found = self._permissions_by_user.get(user, {}).values()
        return [record for record in found if isinstance(record, TopicPermissionRecord) and record.vhost == vhost]

    def secret(self, name: str) -> bytes | None:
        """Return a secret of this store; ``None`` when it is not set."""
        record = self._secrets.get(name)
        return None if record is None else record.value

    def usable(self, pattern: str) -> str:
        """Return a permission's pattern; the empty pattern, which matches nothing, if it does not compile.

        Data of an earlier version may contain a pattern that the engine does not support.
        """
        try:
            self._compile_pattern(pattern)
        except PreconditionFailed:
            return ""
        return pattern

    def faults(self) -> Iterator[tuple[_AnyPermission, str]]:
        """Yield each permission whose pattern does not compile, with the error; such a permission allows nothing."""
        for record in self._all_permissions():
            try:
                for pattern in _patterns_of(record):
                    self._compile_pattern(pattern)
            except PreconditionFailed as refusal:
                yield record, str(refusal)

    # Changes

    def put_secret(self, name: str, value: bytes) -> None:
        """Store random bytes under a name."""
        self._change(Put(SecretRecord(name, value)))

    def put_user(self, user: UserRecord) -> None:
        """Create or replace a user.

        :raises PreconditionFailed: when a name, a tag or a limit is invalid, or a user of this name is being deleted.
        """
        require_valid_user(user)
        if user.name in self._removed_users:
            raise PreconditionFailed(f"user '{user.name}' is being deleted, try again later")
        known = self.user(user.name)
        self._change(writable(user))
        details = {"tags": user.tags}
        if known is None:
            self.emit(Event("user.created", "", user.name, details))
            return
        if known.password_hash != user.password_hash:
            change = "changed" if user.password_hash else "cleared"
            self.emit(Event(f"user.password.{change}", "", user.name))
        if known.tags != user.tags:
            self.emit(Event("user.tags.set", "", user.name, details))
        if known.limits != user.limits:
            self.emit(Event(f"user.limits.{'set' if user.limits else 'cleared'}", "", user.name, dict(user.limits)))

    def remove_user(self, name: str) -> None:
        """Remove the user at once, and its permissions in slices. :raises NotFound: when there is no such user.

        The store removes the permissions first, so that after a crash in between the user has less of them, and no
        later user of this name gets any. Each of them may concern a virtual host of its own.
        """
        self._require_own()
        self._require_user(name)
        self._removed_users.add(name)
        self.apply(Removed(UserRecord.kind, (name,)))
        self.run(self._removing_user(name))

    def _removing_user(self, name: str) -> Iterator[None]:
        for permission in drained(list(self._permissions_by_user.get(name, {}).values())):
            if self._is_current(permission):
                self._record_removal(permission)
            yield
        self._record(Removed(UserRecord.kind, (name,)))
        self._removed_users.discard(name)
        self.emit(Event("user.deleted", "", name))

    def put_permission(self, permission: PermissionRecord) -> None:
        """Set a user's permission for a virtual host.

        :raises NotFound: when the user does not exist.
        :raises PreconditionFailed: when a pattern is not a regular expression.
        """
        self._require_user(permission.user)
        for pattern in _patterns_of(permission):
            self._compile_pattern(pattern)
        self._change(writable(permission))
        patterns = {"configure": permission.configure, "write": permission.write, "read": permission.read}
        self.emit(Event("permission.created", permission.vhost, permission.user, patterns))

    def remove_permission(self, vhost: str, user: str) -> None:
        """Remove a user's permission for a virtual host; harmless if it has none."""
        if (permission := self.permission(vhost, user)) is not None:
            self._remove(permission)

    def put_topic_permission(self, permission: TopicPermissionRecord) -> None:
        """Set a user's permitted routing keys with one topic exchange. Raises as ``put_permission`` does."""
        self._require_user(permission.user)
        require_name("exchange", permission.exchange)
        for pattern in _patterns_of(permission):
            self._compile_pattern(pattern)
        self._change(writable(permission))
        details = {"exchange": permission.exchange, "write": permission.write, "read": permission.read}
        self.emit(Event("topic.permission.created", permission.vhost, permission.user, details))

    def remove_topic_permission(self, vhost: str, user: str, exchange: str) -> None:
        """Remove a topic permission, so that all routing keys are allowed again; harmless if there is none."""
        if (permission := self._topic_permission_by_key.get((vhost, user, exchange))) is not None:
            self._remove(permission)

    def removing_vhost(self, vhost: str) -> Iterator[None]:
        """Return the steps that remove all permissions for a virtual host that is being deleted."""
        if self.is_copy:
            return
        for permission in drained(self._all_permissions()):
            if permission.vhost == vhost and self._is_current(permission):
                self._remove(permission)
            yield

    def _remove(self, permission: _AnyPermission) -> None:
        """Remove a permission, and report it."""
        self._require_own()
        self._record_removal(permission)
        self._tell_listeners(permission.user)

    def _record_removal(self, permission: _AnyPermission) -> None:
        """Remove a permission, and report it to all but the listeners."""
        change = removal(permission)
        for _ in self._applied(change):
            pass
        self._record(change)
        if isinstance(permission, PermissionRecord):
            self.emit(Event("permission.deleted", permission.vhost, permission.user))
        else:
            details = {"exchange": permission.exchange}
            self.emit(Event("topic.permission.deleted", permission.vhost, permission.user, details))

    def _is_current(self, permission: _AnyPermission) -> bool:
        """Return whether a permission was not removed since it was listed."""
        if isinstance(permission, PermissionRecord):
            return permission.key in self._permission_by_key
        return permission.key in self._topic_permission_by_key

    def _all_permissions(self) -> list[_AnyPermission]:
        return [*self.permissions, *self.topic_permissions]

    def _require_user(self, name: str) -> None:
        if name not in self._user_by_name:
            raise NotFound(f"no user '{name}'")

    def _require_own(self) -> None:
        if self.is_copy:
            raise PreconditionFailed("users are changed by the leader of the first cell of the cluster")

    def _change(self, change: Put | Removed) -> None:
        self._require_own()
        self.apply(change)
        self._record(change)

    # Applying changes

    def apply(self, change: Change) -> None:
        """Apply a change, live or during recovery; other kinds of records are ignored."""
        for name in self._applied(change):
            self._tell_listeners(name)

    def _tell_listeners(self, name: str) -> None:
        for heard_by in tuple(self._listeners):
            if (listener := heard_by()) is None:
                self._listeners.remove(heard_by)
            else:
                listener(name)

    def on_change(self, listener: Listener) -> None:
        """Call ``listener`` after each change, so that it can drop its cached data of the user.

        A bound method is held weakly: it is removed together with its object.
        """
        self._listeners.append(WeakMethod(listener) if isinstance(listener, MethodType) else lambda: listener)

    def entities(self) -> Iterator[Entity]:
        """Yield everything stored, in the form in which the store returns it."""
        yield from self._user_by_name.values()
        yield from self._all_permissions()
        yield from self._secrets.values()

    def _applied(self, change: Change) -> Iterator[str]:
        """Apply a change and yield the name of the user it concerns, if it concerns one."""
        match change:
            case Put(UserRecord() as user):
                self._user_by_name[user.name] = user
                yield user.name
            case Put(PermissionRecord() as permission):
                self._permission_by_key[permission.key] = permission
                self._index(permission)
                yield permission.user
            case Put(TopicPermissionRecord() as topic_permission):
                self._topic_permission_by_key[topic_permission.key] = topic_permission
                self._index(topic_permission)
                yield topic_permission.user
            case Put(SecretRecord() as secret):
                self._secrets[secret.name] = secret
            case Removed(UserRecord.kind, (str(name),)):
                self._user_by_name.pop(name, None)
                yield name
            case Removed(PermissionRecord.kind, (_, str(name)) as key):
                self._unindex(name, self._permission_by_key.pop(key, None))
                yield name
            case Removed(TopicPermissionRecord.kind, (_, str(name), _) as key):
                self._unindex(name, self._topic_permission_by_key.pop(key, None))
                yield name

    def _index(self, permission: _AnyPermission) -> None:
        self._permissions_by_user.setdefault(permission.user, {})[removal(permission)] = permission

    def _unindex(self, user: str, permission: _AnyPermission | None) -> None:
        if permission is None:
            return
        of_user = self._permissions_by_user[user]
        del of_user[removal(permission)]
        if not of_user:
            del self._permissions_by_user[user]


def _run_at_once(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


def _patterns_of(permission: _AnyPermission) -> tuple[str, ...]:
    if isinstance(permission, PermissionRecord):
        return permission.configure, permission.write, permission.read
    return permission.write, permission.read


def removal(entity: Entity) -> Removed:
    """Return the change that removes an entity."""
    return Removed(entity.kind, entity.key)
