"""Apply definitions to a running broker, in RabbitMQ's order.

All entries are checked before any is applied (``validation.py``), so definitions are applied as a whole or not at all.
Applying the same file again changes nothing. As in RabbitMQ, exchanges and queues with reserved names are skipped, and
so are bindings whose source or destination was not exported, such as those of exclusive queues. Entities that exist
with other settings stay unchanged.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeVar

from gateway.definitions import model
from gateway.definitions.records import Records
from gateway.definitions.validation import validate
from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import ConfigurationError, NotFound, PreconditionFailed, Refused, ResourceLocked
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.names import RESERVED_PREFIX
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog

D = TypeVar("D", bound=model.Definition)
_log: Final = StructuredLog("definitions")


def apply_definitions(definitions: model.Definitions, broker: Broker, source: str, default_vhost: str = "/") -> None:
    """Apply definitions to a broker; entries without a ``vhost`` go to ``default_vhost``. The definitions are emptied.

    :param source: origin of the definitions, for errors and the log.
    :raises ConfigurationError: with a line for each entry that the broker would refuse; then nothing has been applied.
    """
    for _ in steps_of(definitions, broker, source, default_vhost):
        pass


def steps_of(
    definitions: model.Definitions,
    broker: Broker,
    source: str,
    default_vhost: str = "/",
    elsewhere: Collection[str] = (),
) -> Iterator[None]:
    """Check and then apply definitions, one entry per step, so that other work can run between the steps.

    Permissions may be for virtual hosts ``elsewhere``, in other cells of a cluster. The other arguments and errors are
    those of ``apply_definitions``. An entry may still be refused while it is applied, if the
    broker has changed since the check: then the error states that the entries before it have been applied.
    """
    users, queues = len(definitions.users), len(definitions.queues)
    yield from validate(definitions, broker, source, default_vhost, elsewhere)
    applier = _Applier(broker, Records(definitions.version, broker.parameters), default_vhost, elsewhere)
    yield from _apply_all(source, "users", definitions.users, applier.user)
    yield from _apply_all(source, "vhosts", definitions.vhosts, applier.vhost)
    yield from _apply_all(source, "permissions", definitions.permissions, applier.permission)
    yield from _apply_all(source, "topic_permissions", definitions.topic_permissions, applier.topic_permission)
    yield from _apply_all(source, "exchanges", definitions.exchanges, applier.exchange)
    yield from _apply_all(source, "global_parameters", definitions.global_parameters, applier.global_parameter)
    yield from _apply_all(source, "policies", definitions.policies, applier.policy)
    yield from _apply_all(source, "parameters", definitions.parameters, applier.parameter)
    yield from _apply_all(source, "queues", definitions.queues, applier.queue)
    yield from _apply_all(source, "bindings", definitions.bindings, applier.binding)
    _log.info("definitions applied", source=source, users=users, queues=queues)


def _apply_all(source: str, category: str, entries: list[D], step: Callable[[D], None]) -> Iterator[None]:
    entries.reverse()
    for number in range(len(entries)):
        try:
            step(entries.pop())  # freed one by one: freeing many at the end would block for long
        except Refused as refusal:
            changed = "the broker changed after the check; the entries before this one have been applied"
            raise ConfigurationError(f"{source}: {category}[{number}]: {refusal} ({changed})") from refusal
        yield


class _Applier:
    """Applies an entry of each category. Each method raises the broker's errors."""

    def __init__(self, broker: Broker, records: Records, default_vhost: str, elsewhere: Collection[str]) -> None:
        self._broker = broker
        self._records = records
        self._default_vhost = default_vhost
        self._elsewhere = elsewhere

    def user(self, user: model.User) -> None:
        directory = self._broker.directory
        directory.put_user(self._records.user(user, directory.user(user.name)))

    def vhost(self, vhost: model.VhostDefinition) -> None:
        metadata = vhost.effective_metadata
        if vhost.name in self._broker.vhost_by_name:
            self._broker.describe_vhost(vhost.name, metadata.description, metadata.tags, metadata.default_queue_type)
        else:
            self._broker.declare_vhost(
                vhost.name,
                description=metadata.description or "",
                tags=metadata.tags or (),
                default_queue_type=metadata.default_queue_type or "",
            )
        if metadata.protected_from_deletion:
            self._broker.protect_vhost(vhost.name, True)
        if vhost.tracing:
            self._broker.trace(vhost.name, True)
        if vhost.trace_table:
            self._broker.trace_to_table(vhost.name, True)
        if vhost.limits:
            self._broker.limit_vhost(vhost.name, vhost.limits)

    def permission(self, permission: model.Permission) -> None:
        record = self._records.permission(self._of_any_cell(permission.vhost), permission)
        self._broker.directory.put_permission(record)

    def topic_permission(self, permission: model.TopicPermission) -> None:
        record = self._records.topic_permission(self._of_any_cell(permission.vhost), permission)
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
            _log.warning(
                "existing exchange left unchanged", vhost=vhost.name, exchange=exchange.name, reason=str(refusal)
            )

    def queue(self, queue: model.QueueDefinition) -> None:
        vhost = self._vhost(queue.vhost)
        if queue.name.startswith(RESERVED_PREFIX):
            _log.warning("queue with a reserved name skipped", vhost=vhost.name, queue=queue.name)
            return
        arguments = queue.arguments_in(vhost.record.default_queue_type or self._broker.queue_rules.default_type)
        try:
            vhost.declare_queue(
                queue.name, is_durable=queue.durable, is_auto_delete=queue.auto_delete, arguments=arguments
            )
        except (PreconditionFailed, ResourceLocked) as refusal:
            if queue.name not in vhost.queue_by_name:
                raise
            _log.warning("existing queue left unchanged", vhost=vhost.name, queue=queue.name, reason=str(refusal))

    def binding(self, binding: model.BindingDefinition) -> None:
        vhost = self._vhost(binding.vhost)
        if not binding.source:
            return  # bindings to the default exchange are implicit
        find = vhost.queue if binding.destination_type == "queue" else vhost.exchange
        try:
            source, destination = vhost.exchange(binding.source), find(binding.destination)
        except NotFound as error:
            _log.warning("binding skipped: source or destination missing", vhost=vhost.name, reason=str(error))
        else:
            vhost.bind(source, destination, binding.routing_key, binding.arguments)

    def policy(self, policy: model.Policy) -> None:
        self._put_policy(self._records.policy(self._existing(policy.vhost), policy))

    def parameter(self, parameter: model.AnyParameter) -> None:
        vhost = self._existing(parameter.vhost)
        if isinstance(parameter, model.OperatorPolicy):
            self._put_policy(self._records.operator_policy(vhost, parameter))
        elif isinstance(parameter, model.VhostLimits):
            self._broker.limit_vhost(vhost, parameter.value)
        else:
            self._broker.parameters.put(self._records.parameter(vhost, parameter))
            if parameter.component in self._broker.parameters.components:
                return
            _log.warning(
                "parameter without effect",
                vhost=vhost,
                component=parameter.component,
                name=parameter.name,
                reason=f"component {parameter.component} not found",
            )

    def global_parameter(self, parameter: model.GlobalParameter) -> None:
        self._broker.parameters.put(self._records.global_parameter(parameter))

    def _put_policy(self, record: PolicyRecord) -> None:
        """Set a policy, unless it exists as it is: it may have settings of a plugin that is disabled now."""
        if self._broker.policies.get(record.key) != record:
            self._broker.put_policy(record)

    def _of_any_cell(self, vhost: str | None) -> str:
        return vhost if vhost is not None and vhost in self._elsewhere else self._existing(vhost)

    def _existing(self, vhost: str | None) -> str:
        """Return the name of the virtual host, or of the default one. :raises NotFound: if it does not exist."""
        return self._vhost(vhost).name

    def _vhost(self, vhost: str | None) -> VirtualHost:
        return self._broker.vhost(vhost or self._default_vhost)
