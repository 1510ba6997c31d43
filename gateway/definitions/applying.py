"""From definitions to users, virtual hosts and topology of a running broker, in RabbitMQ's order.

Applying the same file again changes nothing. As RabbitMQ does, we leave out exchanges and queues with reserved names,
and bindings whose ends were not exported, such as those of exclusive queues; and what exists with other settings stays
as it is.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from gateway import passwords
from gateway.definitions import model
from gateway.kernel.broker import Broker
from gateway.kernel.errors import ConfigurationError, NotFound, PreconditionFailed, Refused, ResourceLocked
from gateway.kernel.records import ParameterRecord, PermissionRecord, PolicyRecord, TopicPermissionRecord, UserRecord
from gateway.kernel.vhost import VirtualHost
from gateway.logs import Log
from gateway.passwords import ARGON2ID, DEFAULT_ALGORITHM, hash_password
from gateway.scram import kept_credential

RESERVED: Final = "amq."
VHOST_LIMITS: Final = "vhost-limits"
"""The component under which RabbitMQ exports the limits of virtual hosts."""
MD5_UNTIL: Final = ("3.0.", "3.1.", "3.2.", "3.3.", "3.4.", "3.5.")
"""The versions of RabbitMQ that hashed with MD5 and did not say so."""

D = TypeVar("D", bound=model.Definition)
_log: Final = Log("definitions")


def apply_definitions(definitions: model.Definitions, broker: Broker, source: str, default_vhost: str = "/") -> None:
    """Apply definitions to a broker; what has no ``vhost`` goes to ``default_vhost``.

    :param source: where they came from, for errors and the log.
    :raises ConfigurationError: for the first entry that the broker refuses; those before it have been applied.
    """
    for _ in steps_of(definitions, broker, source, default_vhost):
        pass


def steps_of(definitions: model.Definitions, broker: Broker, source: str, default_vhost: str = "/") -> Iterator[None]:
    """Apply definitions entry by entry, one each time it is asked on; arguments and errors are ``apply_definitions``'.

    For those who must not keep others waiting meanwhile.
    """
    steps = _Steps(broker, definitions.version, default_vhost)
    yield from _each(source, "users", definitions.users, steps.user)
    yield from _each(source, "vhosts", definitions.vhosts, steps.vhost)
    yield from _each(source, "permissions", definitions.permissions, steps.permission)
    yield from _each(source, "topic_permissions", definitions.topic_permissions, steps.topic_permission)
    yield from _each(source, "exchanges", definitions.exchanges, steps.exchange)
    yield from _each(source, "global_parameters", definitions.global_parameters, steps.global_parameter)
    yield from _each(source, "policies", definitions.policies, steps.policy)
    yield from _each(source, "parameters", definitions.parameters, steps.parameter)
    yield from _each(source, "queues", definitions.queues, steps.queue)
    yield from _each(source, "bindings", definitions.bindings, steps.binding)
    _log.info("definitions applied", source=source, users=len(definitions.users), queues=len(definitions.queues))


def _each(source: str, category: str, entries: Iterable[D], step: Callable[[D], None]) -> Iterator[None]:
    for number, entry in enumerate(entries):
        try:
            step(entry)
        except Refused as refusal:
            raise ConfigurationError(f"{source}: {category}[{number}]: {refusal}") from refusal
        yield


class _Steps:
    """How an entry of each category is applied. Each raises what the broker raises."""

    def __init__(self, broker: Broker, version: str, default_vhost: str) -> None:
        self._broker = broker
        self._default_algorithm = algorithm_of(version)
        self._default_vhost = default_vhost

    def user(self, user: model.User) -> None:
        is_argon2 = bool(user.password) or passwords.algorithm_of(user.password_hash) == ARGON2ID
        default = ARGON2ID if is_argon2 else self._default_algorithm
        algorithm, directory = user.hashing_algorithm or default, self._broker.directory
        hashed = _password_hash(user, algorithm)
        credential = user.scram_sha_256 or kept_credential(user.password, hashed, directory.user(user.name))
        directory.put_user(UserRecord(user.name, hashed, algorithm, list(user.tags), user.limits, credential))

    def vhost(self, vhost: model.Vhost) -> None:
        said = vhost.said
        if vhost.name in self._broker.vhost_by_name:
            self._broker.describe_vhost(vhost.name, said.description, said.tags, said.default_queue_type)
        else:
            self._broker.declare_vhost(
                vhost.name,
                description=said.description or "",
                tags=said.tags or (),
                default_queue_type=said.default_queue_type or "",
            )
        if said.protected_from_deletion:
            self._broker.protect_vhost(vhost.name, True)
        if vhost.tracing:
            self._broker.trace(vhost.name, True)
        if vhost.trace_table:
            self._broker.trace_to_table(vhost.name, True)
        if vhost.limits:
            self._broker.limit_vhost(vhost.name, vhost.limits)

    def permission(self, permission: model.Permission) -> None:
        vhost = self._existing(permission.vhost)
        self._broker.directory.put_permission(
            PermissionRecord(vhost, permission.user, permission.configure, permission.write, permission.read)
        )

    def topic_permission(self, permission: model.TopicPermission) -> None:
        vhost = self._existing(permission.vhost)
        self._broker.directory.put_topic_permission(
            TopicPermissionRecord(vhost, permission.user, permission.exchange, permission.write, permission.read)
        )

    def exchange(self, exchange: model.Exchange) -> None:
        if not exchange.name or exchange.name.startswith(RESERVED):
            return
        vhost = self._vhost(exchange.vhost)
        try:
            vhost.declare_exchange(
                exchange.name,
                exchange.type,
                is_durable=exchange.durable,
                is_auto_delete=exchange.auto_delete,
                is_internal=exchange.internal,
                arguments=exchange.arguments,
            )
        except PreconditionFailed as refusal:
            if exchange.name not in vhost.exchange_by_name:
                raise
            _log.warning("exchange left as it is", vhost=vhost.name, exchange=exchange.name, reason=str(refusal))

    def queue(self, queue: model.Queue) -> None:
        vhost = self._vhost(queue.vhost)
        if queue.name.startswith(RESERVED):
            _log.warning("queue with a reserved name left out", vhost=vhost.name, queue=queue.name)
            return
        try:
            vhost.declare_queue(
                queue.name, is_durable=queue.durable, is_auto_delete=queue.auto_delete, arguments=queue.arguments
            )
        except (PreconditionFailed, ResourceLocked) as refusal:
            if queue.name not in vhost.queue_by_name:
                raise
            _log.warning("queue left as it is", vhost=vhost.name, queue=queue.name, reason=str(refusal))

    def binding(self, binding: model.Binding) -> None:
        vhost = self._vhost(binding.vhost)
        if not binding.source:
            return  # every queue is bound to the default exchange by itself
        find = vhost.queue if binding.destination_type == "queue" else vhost.exchange
        try:
            source, destination = vhost.exchange(binding.source), find(binding.destination)
        except NotFound as error:
            _log.warning("binding left out", vhost=vhost.name, reason=str(error))
        else:
            vhost.bind(source, destination, binding.routing_key, binding.arguments)

    def policy(self, policy: model.Policy) -> None:
        self._put_policy(policy.name, policy.vhost, policy, is_operator=False)

    def parameter(self, parameter: model.Parameter | model.OperatorPolicy) -> None:
        if isinstance(parameter, model.OperatorPolicy):
            self._put_policy(parameter.name, parameter.vhost, parameter.value, is_operator=True)
        else:
            vhost = self._existing(parameter.vhost)
            if parameter.component == VHOST_LIMITS:
                self._broker.limit_vhost(vhost, dict(parameter.value))
                return
            self._broker.put_parameter(ParameterRecord(vhost, parameter.component, parameter.name, parameter.value))

    def global_parameter(self, parameter: model.GlobalParameter) -> None:
        self._broker.put_parameter(ParameterRecord("", "", parameter.name, parameter.value))

    def _put_policy(self, name: str, vhost: str | None, rule: model.PolicyRule, *, is_operator: bool) -> None:
        self._broker.put_policy(
            PolicyRecord(
                self._existing(vhost),
                name,
                is_operator,
                rule.pattern,
                rule.apply_to,
                rule.priority,
                rule.definition,
            )
        )

    def _existing(self, vhost: str | None) -> str:
        """Return the name of the virtual host meant, having made sure that it exists."""
        return self._vhost(vhost).name

    def _vhost(self, vhost: str | None) -> VirtualHost:
        return self._broker.vhost(vhost or self._default_vhost)


def algorithm_of(version: str) -> str:
    """Return the algorithm of password hashes in an export of this version of RabbitMQ that does not name it."""
    return "rabbit_password_hashing_md5" if version.startswith(MD5_UNTIL) else DEFAULT_ALGORITHM


def _password_hash(user: model.User, algorithm: str) -> str:
    """Return the hash to store; empty for a user who cannot log in with a password."""
    return hash_password(user.password, algorithm) if user.password else user.password_hash or ""
