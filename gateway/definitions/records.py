"""Conversion of definitions to the broker's records."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gateway.access import passwords
from gateway.access.passwords import ARGON2ID, DEFAULT_ALGORITHM, hash_password
from gateway.access.scram import kept_credential
from gateway.definitions import model
from gateway.definitions.secrets import restored
from gateway.kernel.journal.records.access import PermissionRecord, TopicPermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import ParameterRecord, PolicyRecord
from gateway.kernel.messages.message import Value

MD5_UNTIL: Final = ("3.0.", "3.1.", "3.2.", "3.3.", "3.4.", "3.5.")
"""Versions of RabbitMQ whose exports contain MD5 hashes without naming the algorithm."""


class Records:
    """Creates records from entries. ``version`` is that of the RabbitMQ that wrote them, empty if unknown.

    ``stored`` are the parameters of the broker, whose passwords replace ``***`` in the URIs of parameters.
    """

    def __init__(self, version: str, stored: Mapping[tuple[Value, ...], ParameterRecord]) -> None:
        self._default_algorithm = algorithm_of(version)
        self._stored = stored

    def user(self, user: model.User, known: UserRecord | None) -> UserRecord:
        """Return the record of a user with its credentials; ``known`` is the existing record."""
        algorithm = self._algorithm(user)
        hashed = hash_password(user.password, algorithm) if user.password else user.password_hash or ""
        credential = user.scram_sha_256 or kept_credential(user.password, hashed, known)
        return UserRecord(user.name, hashed, algorithm, list(user.tags), user.limits, credential)

    def user_without_password(self, user: model.User) -> UserRecord:
        """Return the record of a user without hashing its password, which is slow."""
        return UserRecord(user.name, user.password_hash or "", self._algorithm(user), list(user.tags), user.limits)

    def _algorithm(self, user: model.User) -> str:
        is_argon2 = bool(user.password) or passwords.algorithm_of(user.password_hash) == ARGON2ID
        return user.hashing_algorithm or (ARGON2ID if is_argon2 else self._default_algorithm)

    def permission(self, vhost: str, permission: model.Permission) -> PermissionRecord:
        """Return the record of a permission."""
        return PermissionRecord(vhost, permission.user, permission.configure, permission.write, permission.read)

    def topic_permission(self, vhost: str, permission: model.TopicPermission) -> TopicPermissionRecord:
        """Return the record of a topic permission."""
        return TopicPermissionRecord(vhost, permission.user, permission.exchange, permission.write, permission.read)

    def policy(self, vhost: str, policy: model.Policy) -> PolicyRecord:
        """Return the record of a policy."""
        return _policy(vhost, policy.name, policy, is_operator=False)

    def operator_policy(self, vhost: str, policy: model.OperatorPolicy) -> PolicyRecord:
        """Return the record of an operator policy."""
        return _policy(vhost, policy.name, policy.value, is_operator=True)

    def parameter(self, vhost: str, parameter: model.Parameter) -> ParameterRecord:
        """Return the record of a virtual host's parameter. :raises UnknownSecret: if a password is not stored."""
        return self.with_secrets(ParameterRecord(vhost, parameter.component, parameter.name, parameter.value))

    def global_parameter(self, parameter: model.GlobalParameter) -> ParameterRecord:
        """Return the record of a global parameter. :raises UnknownSecret: if a password is not stored."""
        return self.with_secrets(ParameterRecord("", "", parameter.name, parameter.value))

    def with_secrets(self, record: ParameterRecord) -> ParameterRecord:
        """Return a parameter with the stored passwords. :raises UnknownSecret: if one is not stored."""
        return with_stored_secrets(record, self._stored.get(record.key))


def with_stored_secrets(record: ParameterRecord, stored: ParameterRecord | None) -> ParameterRecord:
    """Return a parameter whose replaced passwords are those of the stored one. :raises UnknownSecret: if unknown."""
    subject = f"{record.component or 'global parameter'} '{record.name}'"
    return replace(record, value=restored(record.value, None if stored is None else stored.value, subject))


def algorithm_of(version: str) -> str:
    """Return the algorithm of password hashes in exports of this RabbitMQ version that do not name it."""
    return "rabbit_password_hashing_md5" if version.startswith(MD5_UNTIL) else DEFAULT_ALGORITHM


def _policy(vhost: str, name: str, rule: model.PolicyRule, *, is_operator: bool) -> PolicyRecord:
    return PolicyRecord(vhost, name, is_operator, rule.pattern, rule.apply_to, rule.priority, rule.definition)
