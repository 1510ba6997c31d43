"""Records of users, permissions and the secrets of a store."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.messages.message import Value


@dataclass(frozen=True, slots=True)
class UserRecord(Entity):
    """A user of the internal database. ``password_hash`` is RabbitMQ's: base64 of a 4 byte salt and the digest.

    ``scram_sha_256`` is the verifier of ``gateway.access.scram``. It is empty if only the password's hash is known, as
    in every record of version 1, which did not have the field.
    """

    kind: ClassVar[str] = "user"
    version: ClassVar[int] = 2
    name: str
    password_hash: str
    hashing_algorithm: str
    tags: list[Value]
    limits: dict[str, Value]
    scram_sha_256: str = ""


@dataclass(frozen=True, slots=True)
class SecretRecord(Entity):
    """Random bytes of this store, for secrets that have to stay the same over restarts."""

    kind: ClassVar[str] = "secret"
    name: str
    value: bytes


@dataclass(frozen=True, slots=True)
class PermissionRecord(Entity):
    """Patterns of the names that a user may configure, write and read in a virtual host."""

    kind: ClassVar[str] = "permission"
    key_width: ClassVar[int] = 2
    vhost: str
    user: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class TopicPermissionRecord(Entity):
    """Patterns of the routing keys that a user may write and read through one topic exchange."""

    kind: ClassVar[str] = "topic_permission"
    key_width: ClassVar[int] = 3
    vhost: str
    user: str
    exchange: str
    write: str
    read: str
