"""Whether a broker would take definitions: everything that it would refuse is told before anything is applied.

The checks are those of the kernel itself, made against what the broker has and what the definitions bring, in the order
in which they would be applied. Bindings are tried on a throwaway object of their exchange's type.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from gateway.definitions import model
from gateway.definitions.records import Records
from gateway.kernel.binding import Binding
from gateway.kernel.bounds import require_arguments, require_key, require_name
from gateway.kernel.broker import Broker
from gateway.kernel.declarations import ExchangeDeclaration, QueueDeclaration
from gateway.kernel.entity_checks import require_valid_parameter, require_valid_user, require_valid_vhost
from gateway.kernel.errors import ConfigurationError, NotAllowed, NotFound, PreconditionFailed, Refused
from gateway.kernel.exchange import Exchange
from gateway.kernel.exchanges import factory_of
from gateway.kernel.faults import described
from gateway.kernel.limits import VHOST_LIMITS, require_room_for_binding, require_room_for_queue, require_valid_limits
from gateway.kernel.message import Value
from gateway.kernel.names import RESERVED_PREFIX, printable
from gateway.kernel.policy_checks import require_valid_policy
from gateway.kernel.queue import Queue
from gateway.kernel.queues import require_permitted
from gateway.kernel.records import PolicyRecord
from gateway.kernel.values import dumps_key

#: Lines that an error has at most.
MOST_LINES: Final = 1000

#: How the kernel names the argument at fault.
_ARGUMENT: Final = re.compile(r"(?:invalid arg|invalid type '\w+' for arg) '([^']+)'")

D = TypeVar("D", bound=model.Definition)


def judge(definitions: model.Definitions, broker: Broker, source: str, default_vhost: str) -> Iterator[None]:
    """Check definitions entry by entry, one each time this is asked on.

    :raises ConfigurationError: at the end, with one line for each entry that the broker would refuse.
    """
    wrong: list[str] = []

    def each(category: str, entries: Iterable[D], check: Callable[[D], None]) -> Iterator[None]:
        for number, entry in enumerate(entries):
            try:
                check(entry)
            except Refused as refusal:
                reason = " ".join(str(refusal).split())  # RabbitMQ's words for policies have several lines
                wrong.append(f"{source}: {_place(category, number, reason)}: {reason}")
            yield

    checks = _Checks(broker, Records(definitions.version), default_vhost, definitions)
    yield from each("users", definitions.users, checks.user)
    yield from each("vhosts", definitions.vhosts, checks.vhost)
    yield from each("permissions", definitions.permissions, checks.permission)
    yield from each("topic_permissions", definitions.topic_permissions, checks.topic_permission)
    yield from each("exchanges", definitions.exchanges, checks.exchange)
    yield from each("global_parameters", definitions.global_parameters, checks.global_parameter)
    yield from each("policies", definitions.policies, checks.policy)
    yield from each("parameters", definitions.parameters, checks.parameter)
    yield from each("queues", definitions.queues, checks.queue)
    yield from each("bindings", definitions.bindings, checks.binding)
    if wrong:
        more = [f"{source}: and {len(wrong) - MOST_LINES} more"] if len(wrong) > MOST_LINES else []
        raise ConfigurationError("\n".join(wrong[:MOST_LINES] + more))


def _place(category: str, number: int, refusal: str) -> str:
    found = _ARGUMENT.match(refusal)
    return f"{category}[{number}]" + (f".arguments.{found[1]}" if found and category != "policies" else "")


class _Place:
    """A virtual host as it will be: what is there, and what the definitions have brought so far."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self._broker = broker
        self._there = broker.vhost_by_name.get(name)
        self._types = broker.exchange_types_of(name)
        self._exchanges: dict[str, Exchange] = {}
        self._queues: set[str] = set()
        self._bindings: set[tuple[str, ...]] = set()
        self._end = Queue(name, "", broker.journal)
        record = self._there.record if self._there is not None else None
        self.limits: dict[str, Value] = dict(record.limits) if record is not None else {}
        self.default_type = record.default_queue_type if record is not None else ""

    def declare_exchange(self, declaration: ExchangeDeclaration) -> None:
        """Take in an exchange; one that is there stays as it is. :raises Refused: when it cannot be made."""
        factory_of(self._types, declaration.type, declaration.arguments)
        if self._has_exchange(declaration.name) or declaration.name in self._exchanges:
            return
        declaration.require_new()
        self._exchanges[declaration.name] = self._made(declaration)

    def declare_queue(self, declaration: QueueDeclaration) -> None:
        """Take in a queue; one that is there stays as it is. :raises Refused: when it cannot be made."""
        rules = self._broker.queue_rules
        declaration = declaration.typed(self.default_type or rules.default_type)
        if self._has_queue(declaration.name):
            return
        declaration.require_new()
        require_permitted(declaration, rules)
        count = len(self._queues) + (len(self._there.queue_by_name) if self._there is not None else 0)
        require_room_for_queue(self.name, self.limits, declaration.name, count, rules.max_queues)
        self._queues.add(declaration.name)

    def bind(self, binding: model.Binding) -> None:
        """Try a binding; one of which an end is missing is left out later. :raises Refused: when it cannot be made."""
        source, name = self._source(binding.source), binding.destination
        ends = self._has_queue if binding.destination_type == "queue" else self._will_have_exchange
        if source is None or not ends(name):
            return
        require_key(binding.routing_key)
        require_arguments(f"binding from exchange '{source.name}' in vhost '{self.name}'", binding.arguments)
        tried = Binding(source, self._end, binding.routing_key, binding.arguments)
        try:
            source.type.bind(tried)
            source.type.unbind(tried)
        except Refused:
            raise
        except Exception as error:  # foreign code
            failed = f"exchange type '{source.type_name}' failed to bind '{name}': {described(error)}"
            raise PreconditionFailed(failed) from None
        if not self._has_binding(binding):
            count = len(self._bindings) + (self._there.bindings.count if self._there is not None else 0)
            require_room_for_binding(self.name, self.limits, count, self._broker.queue_rules.max_bindings)
            self._bindings.add(_identity(binding))

    def _has_binding(self, binding: model.Binding) -> bool:
        """Tell whether a binding is there, or is among those that the definitions have brought so far."""
        if _identity(binding) in self._bindings:
            return True
        if self._there is None:
            return False
        source = self._there.exchange_by_name.get(binding.source)
        by_name = self._there.queue_by_name if binding.destination_type == "queue" else self._there.exchange_by_name
        end = by_name.get(binding.destination)
        if source is None or end is None:
            return False
        return self._there.bindings.find(source, end, binding.routing_key, binding.arguments) is not None

    def _has_queue(self, name: str) -> bool:
        return name in self._queues or (self._there is not None and name in self._there.queue_by_name)

    def _has_exchange(self, name: str) -> bool:
        return self._there is not None and name in self._there.exchange_by_name

    def _will_have_exchange(self, name: str) -> bool:
        return name in self._exchanges or self._has_exchange(name)

    def _source(self, name: str) -> Exchange | None:
        """Return a throwaway exchange of this name, on which bindings are tried; ``None`` where there will be none."""
        if name not in self._exchanges:
            there = self._there.exchange_by_name.get(name) if self._there is not None else None
            if there is None or there.inert_reason:
                return None
            self._exchanges[name] = self._made(
                ExchangeDeclaration(self.name, name, there.type_name, arguments=there.arguments)
            )
        return self._exchanges[name]

    def _made(self, declaration: ExchangeDeclaration) -> Exchange:
        type = declaration.type
        factory = factory_of(self._types, type, declaration.arguments)
        try:
            made = factory(declaration.arguments)
        except Refused:
            raise
        except Exception as error:  # foreign code
            failed = f"exchange type '{type}' failed to make exchange '{declaration.name}': {described(error)}"
            raise PreconditionFailed(failed) from None
        return Exchange(self.name, declaration.name, type, made)


def _identity(binding: model.Binding) -> tuple[str, ...]:
    arguments = dumps_key([binding.arguments]).decode()
    return binding.source, binding.destination_type, binding.destination, binding.routing_key, arguments


class _Checks:
    """How an entry of each category is checked. Each raises what the broker would raise."""

    def __init__(self, broker: Broker, records: Records, default_vhost: str, definitions: model.Definitions) -> None:
        self._broker = broker
        self._records = records
        self._default_vhost = default_vhost
        self._users = {*broker.directory.user_by_name, *(user.name for user in definitions.users)}
        self._vhosts = {*broker.vhost_by_name, *(vhost.name for vhost in definitions.vhosts)}
        self._place_by_name: dict[str, _Place] = {}

    def user(self, user: model.User) -> None:
        require_valid_user(self._records.user_without_password(user))

    def vhost(self, vhost: model.Vhost) -> None:
        said = vhost.said
        require_valid_vhost(vhost.name, said.description or "", said.tags or (), said.default_queue_type or "")
        require_valid_limits("limits", VHOST_LIMITS, vhost.limits)
        place = self._place(vhost.name)
        place.default_type = said.default_queue_type or place.default_type
        place.limits = dict(vhost.limits) or place.limits

    def permission(self, permission: model.Permission) -> None:
        record = self._records.permission(self._existing(permission.vhost), permission)
        self._require_user(record.user)
        for pattern in (record.configure, record.write, record.read):
            self._broker.compile_pattern(pattern)

    def topic_permission(self, permission: model.TopicPermission) -> None:
        record = self._records.topic_permission(self._existing(permission.vhost), permission)
        self._require_user(record.user)
        require_name("exchange", record.exchange)
        for pattern in (record.write, record.read):
            self._broker.compile_pattern(pattern)

    def exchange(self, exchange: model.Exchange) -> None:
        place = self._place(exchange.vhost)
        if exchange.name and not exchange.name.startswith(RESERVED_PREFIX):
            place.declare_exchange(
                ExchangeDeclaration(
                    place.name,
                    printable(exchange.name),
                    exchange.type,
                    exchange.durable,
                    exchange.auto_delete,
                    exchange.internal,
                    exchange.arguments,
                )
            )

    def queue(self, queue: model.Queue) -> None:
        place = self._place(queue.vhost)
        if not queue.name.startswith(RESERVED_PREFIX):
            place.declare_queue(
                QueueDeclaration(
                    place.name, printable(queue.name), queue.durable, None, queue.auto_delete, queue.arguments
                )
            )

    def binding(self, binding: model.Binding) -> None:
        place = self._place(binding.vhost)
        if binding.source:
            place.bind(binding)

    def policy(self, policy: model.Policy) -> None:
        self._require_policy(self._records.policy(self._existing(policy.vhost), policy))

    def parameter(self, parameter: model.AnyParameter) -> None:
        vhost = self._existing(parameter.vhost)
        if isinstance(parameter, model.OperatorPolicy):
            self._require_policy(self._records.operator_policy(vhost, parameter))
        elif isinstance(parameter, model.VhostLimits):
            require_valid_limits("limits", VHOST_LIMITS, parameter.value)
            self._place(vhost).limits = dict(parameter.value)
        else:
            require_valid_parameter(self._records.parameter(vhost, parameter))

    def global_parameter(self, parameter: model.GlobalParameter) -> None:
        require_valid_parameter(self._records.global_parameter(parameter))

    def _require_policy(self, record: PolicyRecord) -> None:
        require_valid_policy(record, self._broker.compile_pattern)

    def _require_user(self, name: str) -> None:
        if name not in self._users:
            raise NotFound(f"no user '{name}'")

    def _existing(self, vhost: str | None) -> str:
        name = vhost or self._default_vhost
        if name not in self._vhosts:
            raise NotAllowed(f"vhost {name} not found")
        return name

    def _place(self, vhost: str | None) -> _Place:
        name = self._existing(vhost)
        if name not in self._place_by_name:
            self._place_by_name[name] = _Place(self._broker, name)
        return self._place_by_name[name]
