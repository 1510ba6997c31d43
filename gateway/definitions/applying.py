"""From definitions to users, virtual hosts and topology of a running broker, in RabbitMQ's order.

Everything is checked before anything is applied (``judging.py``), so definitions are applied as a whole or not at all.
Applying the same file again changes nothing. As RabbitMQ does, we leave out exchanges and queues with reserved names,
and bindings whose ends were not exported, such as those of exclusive queues; and what exists with other settings stays
as it is.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from gateway.definitions import model
from gateway.definitions.judging import judge
from gateway.definitions.records import Records
from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import ConfigurationError, NotFound, PreconditionFailed, Refused, ResourceLocked
from gateway.kernel.names import RESERVED_PREFIX
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog

D = TypeVar("D", bound=model.Definition)
_log: Final = StructuredLog("definitions")


def apply_definitions(definitions: model.Definitions, broker: Broker, source: str, default_vhost: str = "/") -> None:
    """Apply definitions to a broker, and use them up; what has no ``vhost`` goes to ``default_vhost``.

    :param source: where they came from, for errors and the log.
    :raises ConfigurationError: with a line for each entry that the broker would refuse; nothing has been applied then.
    """
    for _ in steps_of(definitions, broker, source, default_vhost):
        pass


def steps_of(definitions: model.Definitions, broker: Broker, source: str, default_vhost: str = "/") -> Iterator[None]:
    """Check and then apply definitions entry by entry, one each time this is asked on, so that others go on meanwhile.

    Arguments and errors are those of ``apply_definitions``; the definitions are used up. An entry may still be refused
    while they are applied, if the broker changed since they were checked: then the error says that those before it
    have been applied.
    """
    users, queues = len(definitions.users), len(definitions.queues)
    yield from judge(definitions, broker, source, default_vhost)
    steps = _Steps(broker, Records(definitions.version), default_vhost)
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
    _log.info("definitions applied", source=source, users=users, queues=queues)


def _each(source: str, category: str, entries: list[D], step: Callable[[D], None]) -> Iterator[None]:
    entries.reverse()
    for number in range(len(entries)):
        try:
            step(entries.pop())  # let go of here: to free all of many at the end would take long
        except Refused as refusal:
            changed = "the broker changed meanwhile, and the entries before it are applied"
            raise ConfigurationError(f"{source}: {category}[{number}]: {refusal} ({changed})") from refusal
        yield


class _Steps:
    """How an entry of each category is applied. Each raises what the broker raises."""

    def __init__(self, broker: Broker, records: Records, default_vhost: str) -> None:
        self._broker = broker
        self._records = records
        self._default_vhost = default_vhost

    def user(self, user: model.User) -> None:
        directory = self._broker.directory
        directory.put_user(self._records.user(user, directory.user(user.name)))

    def vhost(self, vhost: model.VhostDefinition) -> None:
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
        record = self._records.permission(self._existing(permission.vhost), permission)
        self._broker.directory.put_permission(record)

    def topic_permission(self, permission: model.TopicPermission) -> None:
        record = self._records.topic_permission(self._existing(permission.vhost), permission)
        self._broker.directory.put_topic_permission(record)

    def exchange(self, exchange: model.ExchangeDefinition) -> None:
        if not exchange.name or exchange.name.startswith(RESERVED_PREFIX):
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

    def queue(self, queue: model.QueueDefinition) -> None:
        vhost = self._vhost(queue.vhost)
        if queue.name.startswith(RESERVED_PREFIX):
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

    def binding(self, binding: model.BindingDefinition) -> None:
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
        self._broker.put_policy(self._records.policy(self._existing(policy.vhost), policy))

    def parameter(self, parameter: model.AnyParameter) -> None:
        vhost = self._existing(parameter.vhost)
        if isinstance(parameter, model.OperatorPolicy):
            self._broker.put_policy(self._records.operator_policy(vhost, parameter))
        elif isinstance(parameter, model.VhostLimits):
            self._broker.limit_vhost(vhost, parameter.value)
        else:
            self._broker.put_parameter(self._records.parameter(vhost, parameter))
            _log.warning(
                "parameter without effect",
                vhost=vhost,
                component=parameter.component,
                name=parameter.name,
                reason=f"component {parameter.component} not found",
            )

    def global_parameter(self, parameter: model.GlobalParameter) -> None:
        self._broker.put_parameter(self._records.global_parameter(parameter))

    def _existing(self, vhost: str | None) -> str:
        """Return the name of the virtual host meant, having made sure that it exists."""
        return self._vhost(vhost).name

    def _vhost(self, vhost: str | None) -> VirtualHost:
        return self._broker.vhost(vhost or self._default_vhost)
