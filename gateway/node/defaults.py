"""The first virtual host and user of an empty store, and the virtual hosts that the settings name."""

import secrets
from collections.abc import Callable

from gateway.access.passwords import hash_password
from gateway.access.scram import kept_credential
from gateway.config import Settings
from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.messages.message import Value


def create_defaults(settings: Settings, broker: Broker, *, is_new: bool) -> None:
    """Create the entities that are missing; those in the store stay as they are.

    ``is_new``: there is no virtual host, in no cell of a cluster either.
    """
    if broker.directory.secret("scram") is None:
        broker.directory.put_secret("scram", secrets.token_bytes(32))
    if is_new:
        broker.declare_vhost(settings.default_vhost, description="Default virtual host")
        if settings.default_user:
            _create_default_user(settings, broker)


def everything(vhost: str) -> bool:
    """Say that a virtual host of the settings belongs to the broker: it has all of them."""
    return True


def apply_vhost_settings(settings: Settings, broker: Broker, has: Callable[[str], bool]) -> None:
    """Create and set up the virtual hosts that the settings name; ``has`` says which ones belong to the broker."""
    for name, configured in settings.vhosts.items():
        if not has(name):
            continue
        if broker.declare_vhost(name).record.tracing != configured.tracing:
            broker.trace(name, configured.tracing)
        if broker.vhost(name).record.trace_table != configured.trace_table:
            broker.trace_to_table(name, configured.trace_table)


def _create_default_user(settings: Settings, broker: Broker) -> None:
    password, algorithm = settings.default_pass.get_secret_value(), settings.login.password_hashing
    tags: list[Value] = list(settings.default_user_tags)
    hash, credential = hash_password(password, algorithm), kept_credential(password, "", None)
    broker.directory.put_user(UserRecord(settings.default_user, hash, algorithm, tags, {}, credential))
    may = settings.default_permissions
    broker.directory.put_permission(
        PermissionRecord(settings.default_vhost, settings.default_user, may.configure, may.write, may.read)
    )
