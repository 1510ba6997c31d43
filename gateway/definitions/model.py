"""The schema of a definitions file, as RabbitMQ exports it.

Unknown keys are ignored, because every version of RabbitMQ adds some. Known keys must have values that RabbitMQ writes.
``vhost`` may be missing in a file with the definitions of one virtual host.
"""

from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from gateway.access.passwords import ALGORITHMS, is_password_hash
from gateway.access.scram import ScramCredential
from gateway.kernel.vhosts.queue_rules import QUEUE_TYPES

JsonObject: TypeAlias = dict[str, Any]
Name = Annotated[str, Field(min_length=1)]


def split_tags(value: object) -> object:
    """Split tags in the format before RabbitMQ 3.9: one string with commas."""
    if isinstance(value, str):
        return [tag.strip() for tag in value.split(",") if tag.strip()]
    return value


def no_list_for_object(value: object) -> object:
    """Convert an empty object that Erlang wrote as an empty list."""
    return {} if value == [] else value


def pairs_for_object(value: object) -> object:
    """Convert an object that Erlang wrote as a list of pairs, ``[["max-queues", 3]]``, or of objects with one member.

    ``rabbitmqctl export_definitions`` of RabbitMQ 3.10 writes limits and the definitions of operator policies this way.
    """
    if isinstance(value, list):
        pairs = [next(iter(each.items())) if isinstance(each, dict) and len(each) == 1 else each for each in value]
        if all(isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            return dict(pairs)
    return value


def no_default_type(value: object) -> object:
    """Convert RabbitMQ's ``"undefined"`` default queue type to ``None``."""
    return None if value == "undefined" else value


Tags = Annotated[list[str], BeforeValidator(split_tags)]
Arguments = Annotated[JsonObject, BeforeValidator(no_list_for_object)]
Pairs = Annotated[JsonObject, BeforeValidator(pairs_for_object)]
QueueType = Annotated[str | None, BeforeValidator(no_default_type)]
ApplyTo = Literal["all", "exchanges", "queues", "classic_queues", "quorum_queues", "streams"]


class Definition(BaseModel):
    """One entry of a definitions file."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, populate_by_name=True)


class User(Definition):
    """A user with a password hash, a password in clear text, or neither; without both, it cannot log in by password.

    ``scram_sha_256`` accompanies the hash in exports of this broker, because it cannot be derived from the hash.
    """

    name: Name
    password_hash: str | None = None
    hashing_algorithm: (
        Literal[
            "rabbit_password_hashing_sha256",
            "rabbit_password_hashing_sha512",
            "rabbit_password_hashing_md5",
            "argon2id",
        ]
        | None
    ) = None
    password: str | None = Field(default=None, repr=False)
    scram_sha_256: str | None = Field(default=None, repr=False)
    tags: Tags = Field(default_factory=list)
    limits: Pairs = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_one_good_password_at_most(self) -> Self:
        if self.password is not None and self.password_hash is not None:
            raise ValueError("must have a password or a password_hash, not both")
        algorithms = [self.hashing_algorithm] if self.hashing_algorithm is not None else list(ALGORITHMS)
        if self.password_hash and not any(is_password_hash(self.password_hash, each) for each in algorithms):
            raise ValueError(
                "must have as password_hash the base64 of a 4 byte salt and a digest of its algorithm, or for argon2id "
                "$argon2id$v=19$m=...,t=...,p=...$salt$hash with at most 256 MiB, 16 passes and 16 lanes"
            )
        if self.scram_sha_256 and not self.password_hash:
            raise ValueError("must have a password_hash if it has scram_sha_256")
        if self.scram_sha_256:
            ScramCredential.parse(self.scram_sha_256)
        return self


class VhostMetadata(Definition):
    """The ``metadata`` of a virtual host, written by RabbitMQ 3.8 and later."""

    description: str | None = None
    tags: Tags | None = None
    default_queue_type: QueueType = None
    protected_from_deletion: bool = False


class VhostDefinition(Definition):
    """A virtual host. ``cell`` is the cell of a cluster in which it is made if it does not exist."""

    name: Name
    cell: Annotated[int, Field(ge=1)] | None = None
    description: str | None = None
    tags: Tags | None = None
    default_queue_type: QueueType = None
    tracing: bool = False
    trace_table: bool = False
    metadata: Annotated[VhostMetadata, BeforeValidator(no_list_for_object)] = VhostMetadata()
    limits: Pairs = Field(default_factory=dict)

    @property
    def effective_metadata(self) -> VhostMetadata:
        """Metadata from ``metadata`` and the top-level keys, which take precedence; ``None`` for missing values."""
        top_level = {
            name: value
            for name in ("description", "tags", "default_queue_type")
            if (value := getattr(self, name)) is not None
        }
        return self.metadata.model_copy(update=top_level)


class Permission(Definition):
    """Permissions of a user in a virtual host."""

    user: Name
    vhost: Name | None = None
    configure: str
    write: str
    read: str


class TopicPermission(Definition):
    """Permissions of a user for routing keys of a topic exchange."""

    user: Name
    vhost: Name | None = None
    exchange: str
    write: str
    read: str


class ExchangeDefinition(Definition):
    """An exchange."""

    name: str
    vhost: Name | None = None
    type: Name
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Arguments = Field(default_factory=dict)


class QueueDefinition(Definition):
    """A queue. RabbitMQ's command line exports its type also where no argument names it."""

    name: Name
    vhost: Name | None = None
    durable: bool = True
    auto_delete: bool = False
    type: str | None = None
    arguments: Arguments = Field(default_factory=dict)

    def arguments_in(self, default_type: str) -> JsonObject:
        """Return the arguments, with the type if it is another than that of queues without one in the virtual host."""
        if "x-queue-type" in self.arguments or self.type not in QUEUE_TYPES or self.type == default_type:
            return self.arguments
        return {**self.arguments, "x-queue-type": self.type}


class BindingDefinition(Definition):
    """A binding."""

    source: str
    vhost: Name | None = None
    destination: str
    destination_type: Literal["queue", "exchange"] = "queue"
    routing_key: str = ""
    arguments: Arguments = Field(default_factory=dict)


class PolicyRule(Definition):
    """The rule of a policy: pattern, priority and definition."""

    pattern: str
    apply_to: ApplyTo = Field(default="all", alias="apply-to")
    priority: int = 0
    definition: Pairs


class Policy(PolicyRule):
    """A policy."""

    name: Name
    vhost: Name | None = None


class Parameter(Definition):
    """A runtime parameter of a virtual host."""

    component: Name
    name: Name
    vhost: Name | None = None
    value: Any


class OperatorPolicy(Definition):
    """An operator policy, which RabbitMQ exports among the parameters."""

    component: Literal["operator_policy"]
    name: Name
    vhost: Name | None = None
    value: PolicyRule


class VhostLimits(Definition):
    """The limits of a virtual host, which RabbitMQ exports among the parameters."""

    component: Literal["vhost-limits"]
    name: Name
    vhost: Name | None = None
    value: Pairs


PARAMETER_KINDS: Final = ("as operator policy", "as limits", "as parameter")
_KIND_BY_COMPONENT: Final = {"operator_policy": PARAMETER_KINDS[0], "vhost-limits": PARAMETER_KINDS[1]}


def parameter_kind(value: object) -> str:
    """Return the kind of an entry of ``parameters``: operator policy, limits or parameter."""
    component = value.get("component") if isinstance(value, dict) else None
    return _KIND_BY_COMPONENT.get(component, PARAMETER_KINDS[2]) if isinstance(component, str) else PARAMETER_KINDS[2]


AnyParameter: TypeAlias = OperatorPolicy | VhostLimits | Parameter
_TaggedParameter = Annotated[
    Annotated[OperatorPolicy, Tag(PARAMETER_KINDS[0])]
    | Annotated[VhostLimits, Tag(PARAMETER_KINDS[1])]
    | Annotated[Parameter, Tag(PARAMETER_KINDS[2])],
    Discriminator(parameter_kind),
]


class GlobalParameter(Definition):
    """A runtime parameter of the whole broker."""

    name: Name
    value: Any


class Definitions(Definition):
    """A definitions file."""

    rabbit_version: str | None = None
    rabbitmq_version: str | None = None
    users: list[User] = Field(default_factory=list)
    vhosts: list[VhostDefinition] = Field(default_factory=list)
    permissions: list[Permission] = Field(default_factory=list)
    topic_permissions: list[TopicPermission] = Field(default_factory=list)
    exchanges: list[ExchangeDefinition] = Field(default_factory=list)
    queues: list[QueueDefinition] = Field(default_factory=list)
    bindings: list[BindingDefinition] = Field(default_factory=list)
    policies: list[Policy] = Field(default_factory=list)
    parameters: list[_TaggedParameter] = Field(default_factory=list)
    global_parameters: list[GlobalParameter] = Field(default_factory=list)

    @property
    def version(self) -> str:
        """Version of the RabbitMQ that wrote the file; empty if unknown."""
        return self.rabbitmq_version or self.rabbit_version or ""


def entry_counts(definitions: Definitions) -> dict[str, int]:
    """Return the number of entries by category, without empty categories."""
    entries = {name: getattr(definitions, name) for name in Definitions.model_fields}
    return {name: len(found) for name, found in entries.items() if isinstance(found, list) and found}
