"""Check definitions before they are applied, and report every entry that the broker would refuse.

The checks are those of the kernel. They run against the existing entities and those of the definitions, in the order in
which the definitions would be applied. Bindings are checked on a throwaway object of their exchange's type.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from gateway.definitions import model
from gateway.definitions.records import Records
from gateway.definitions.topology_check import TopologyCheck
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.entity_checks import require_valid_user, require_valid_vhost
from gateway.kernel.errors import ConfigurationError, NotAllowed, NotFound, Refused
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.bounds import require_name
from gateway.kernel.names import RESERVED_PREFIX, printable
from gateway.kernel.settings.limits import VHOST_LIMITS, require_valid_limits
from gateway.kernel.settings.policy_checks import require_valid_policy
from gateway.kernel.vhosts.declarations import ExchangeDeclaration, QueueDeclaration

#: Maximum number of lines in an error.
MAX_LINES: Final = 1000

#: Pattern of the refused argument's name in the kernel's errors.
_ARGUMENT: Final = re.compile(r"(?:invalid arg|invalid type '\w+' for arg) '([^']+)'")

D = TypeVar("D", bound=model.Definition)


@dataclass(frozen=True, slots=True)
class RefusedEntry:
    """An entry that the broker would refuse: ``number`` counts from 0 within its category. ``reason`` is one line."""

    category: str
    number: int
    reason: str

    @property
    def location(self) -> str:
        """The place in the definitions: the entry, and the argument if the reason is about one."""
        found = _ARGUMENT.match(self.reason)
        argument = f".arguments.{found[1]}" if found and self.category != "policies" else ""
        return f"{self.category}[{self.number}]{argument}"


def validate(
    definitions: model.Definitions, broker: Broker, source: str, default_vhost: str, elsewhere: Collection[str] = ()
) -> Iterator[None]:
    """Check definitions, one entry per step. Virtual hosts ``elsewhere`` may have permissions.

    :raises ConfigurationError: at the end, with one line for each entry that the broker would refuse.
    """
    wrong: list[RefusedEntry] = []
    for refused in entry_checks(definitions, broker, default_vhost, elsewhere):
        if refused is not None:
            wrong.append(refused)
        yield
    if wrong:
        lines = [f"{source}: {refused.location}: {refused.reason}" for refused in wrong[:MAX_LINES]]
        more = [f"{source}: and {len(wrong) - MAX_LINES} more"] if len(wrong) > MAX_LINES else []
        raise ConfigurationError("\n".join(lines + more))


def entry_checks(
    definitions: model.Definitions, broker: Broker, default_vhost: str, elsewhere: Collection[str] = ()
) -> Iterator[RefusedEntry | None]:
    """Check an entry per step; yield why the broker would refuse it, or ``None``."""

    def check_all(category: str, entries: Iterable[D], check: Callable[[D], None]) -> Iterator[RefusedEntry | None]:
        for number, entry in enumerate(entries):
            try:
                check(entry)
            except Refused as refusal:
                reason = " ".join(str(refusal).split())  # RabbitMQ's texts for policies have several lines
                yield RefusedEntry(category, number, reason)
            else:
                yield None

    records = Records(definitions.version, broker.parameters)
    checks = _EntryChecks(broker, records, default_vhost, definitions, elsewhere)
    yield from check_all("users", definitions.users, checks.user)
    yield from check_all("vhosts", definitions.vhosts, checks.vhost)
    yield from check_all("permissions", definitions.permissions, checks.permission)
    yield from check_all("topic_permissions", definitions.topic_permissions, checks.topic_permission)
    yield from check_all("exchanges", definitions.exchanges, checks.exchange)
    yield from check_all("global_parameters", definitions.global_parameters, checks.global_parameter)
    yield from check_all("policies", definitions.policies, checks.policy)
    yield from check_all("parameters", definitions.parameters, checks.parameter)
    yield from check_all("queues", definitions.queues, checks.queue)
    yield from check_all("bindings", definitions.bindings, checks.binding)


class _EntryChecks:
    """Checks an entry of each category. Each method raises the broker's errors."""

    def __init__(
        self,
        broker: Broker,
        records: Records,
        default_vhost: str,
        definitions: model.Definitions,
        elsewhere: Collection[str],
    ) -> None:
        self._broker = broker
        self._records = records
        self._default_vhost = default_vhost
        self._users = {*broker.directory.user_by_name, *(user.name for user in definitions.users)}
        self._vhosts = {*broker.vhost_by_name, *(vhost.name for vhost in definitions.vhosts)}
        self._elsewhere = elsewhere
        self._topology_by_vhost: dict[str, TopologyCheck] = {}

    def user(self, user: model.User) -> None:
        require_valid_user(self._records.user_without_password(user))

    def vhost(self, vhost: model.VhostDefinition) -> None:
        metadata = vhost.effective_metadata
        require_valid_vhost(
            vhost.name, metadata.description or "", metadata.tags or (), metadata.default_queue_type or ""
        )
        require_valid_limits("limits", VHOST_LIMITS, vhost.limits)
        if vhost.cell not in (None, 1):  # the parts of a cluster's definitions name no cell any more
            raise NotAllowed(f"vhost '{vhost.name}': cell must be 1, because there is one cell")
        topology = self._topology(vhost.name)
        topology.default_type = metadata.default_queue_type or topology.default_type
        topology.limits = dict(vhost.limits) or topology.limits

    def permission(self, permission: model.Permission) -> None:
        record = self._records.permission(self._of_any_cell(permission.vhost), permission)
        self._require_user(record.user)
        for pattern in (record.configure, record.write, record.read):
            self._broker.compile_pattern(pattern)

    def topic_permission(self, permission: model.TopicPermission) -> None:
        record = self._records.topic_permission(self._of_any_cell(permission.vhost), permission)
        self._require_user(record.user)
        require_name("exchange", record.exchange)
        for pattern in (record.write, record.read):
            self._broker.compile_pattern(pattern)

    def exchange(self, exchange: model.ExchangeDefinition) -> None:
        topology = self._topology(exchange.vhost)
        if exchange.name and not exchange.name.startswith(RESERVED_PREFIX):
            topology.declare_exchange(
                ExchangeDeclaration(
                    topology.name,
                    printable(exchange.name),
                    exchange.type,
                    exchange.durable,
                    exchange.auto_delete,
                    exchange.internal,
                    exchange.arguments,
                )
            )

    def queue(self, queue: model.QueueDefinition) -> None:
        topology = self._topology(queue.vhost)
        if not queue.name.startswith(RESERVED_PREFIX):
            arguments = queue.arguments_in(topology.default_type or self._broker.queue_rules.default_type)
            name = printable(queue.name)
            topology.declare_queue(
                QueueDeclaration(topology.name, name, queue.durable, None, queue.auto_delete, arguments)
            )

    def binding(self, binding: model.BindingDefinition) -> None:
        topology = self._topology(binding.vhost)
        if binding.source:
            topology.bind(binding)

    def policy(self, policy: model.Policy) -> None:
        self._require_policy(self._records.policy(self._existing(policy.vhost), policy))

    def parameter(self, parameter: model.AnyParameter) -> None:
        vhost = self._existing(parameter.vhost)
        if isinstance(parameter, model.OperatorPolicy):
            self._require_policy(self._records.operator_policy(vhost, parameter))
        elif isinstance(parameter, model.VhostLimits):
            require_valid_limits("limits", VHOST_LIMITS, parameter.value)
            self._topology(vhost).limits = dict(parameter.value)
        else:
            self._broker.parameters.require_valid(self._records.parameter(vhost, parameter))

    def global_parameter(self, parameter: model.GlobalParameter) -> None:
        self._broker.parameters.require_valid(self._records.global_parameter(parameter))

    def _require_policy(self, record: PolicyRecord) -> None:
        if self._broker.policies.get(record.key) == record:
            return  # it may have settings of a plugin that is disabled now
        require_valid_policy(
            record,
            self._broker.compile_pattern,
            self._topology(record.vhost).offered,
            self._broker.archive_context.tables,
        )

    def _require_user(self, name: str) -> None:
        if name not in self._users:
            raise NotFound(f"no user '{name}'")

    def _of_any_cell(self, vhost: str | None) -> str:
        return vhost if vhost is not None and vhost in self._elsewhere else self._existing(vhost)

    def _existing(self, vhost: str | None) -> str:
        name = vhost or self._default_vhost
        if name not in self._vhosts:
            raise NotAllowed(f"vhost {name} not found")
        return name

    def _topology(self, vhost: str | None) -> TopologyCheck:
        name = self._existing(vhost)
        if name not in self._topology_by_vhost:
            self._topology_by_vhost[name] = TopologyCheck(self._broker, name)
        return self._topology_by_vhost[name]
