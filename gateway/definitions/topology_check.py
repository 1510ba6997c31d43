"""A model of a virtual host's topology: its existing entities plus those of the definitions checked so far."""

from gateway.definitions import model
from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import PreconditionFailed, Refused
from gateway.kernel.faults import described
from gateway.kernel.messages.bounds import require_arguments, require_binding_key
from gateway.kernel.messages.message import Value
from gateway.kernel.messages.values import dumps_key
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.settings.limits import require_room_for_binding, require_room_for_queue
from gateway.kernel.vhosts.declarations import ExchangeDeclaration, QueueDeclaration
from gateway.kernel.vhosts.exchanges import factory_of
from gateway.kernel.vhosts.queues import require_permitted


class TopologyCheck:
    """Refuses exchanges, queues and bindings that the broker would refuse, without changing the broker."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self._broker = broker
        self._vhost = broker.vhost_by_name.get(name)
        self._types, self.offered = broker.offers_to(name)
        self._exchanges: dict[str, Exchange] = {}
        self._queues: set[str] = set()
        self._bindings: set[tuple[str, ...]] = set()
        self._throwaway_queue = Queue(name, "", broker.journal)
        record = self._vhost.record if self._vhost is not None else None
        self.limits: dict[str, Value] = dict(record.limits) if record is not None else {}
        self.default_type = record.default_queue_type if record is not None else ""

    def declare_exchange(self, declaration: ExchangeDeclaration) -> None:
        """Check an exchange; an existing one is left unchanged. :raises Refused: if it cannot be declared."""
        existing = self._existing_exchange(declaration.name)
        if existing is None or existing.type_name != declaration.type:  # an inert one may exist
            factory_of(self._types, declaration.type, declaration.arguments)
        if existing is not None or declaration.name in self._exchanges:
            return
        declaration.require_new()
        self._exchanges[declaration.name] = self._created(declaration)

    def declare_queue(self, declaration: QueueDeclaration) -> None:
        """Check a queue; an existing one is left unchanged. :raises Refused: if it cannot be declared."""
        rules = self._broker.queue_rules
        declaration = declaration.typed(self.default_type or rules.default_type)
        if self._has_queue(declaration.name):
            return
        declaration.require_new(self.offered)
        require_permitted(declaration, rules)
        count = len(self._queues) + (len(self._vhost.queue_by_name) if self._vhost is not None else 0)
        require_room_for_queue(self.name, self.limits, declaration.name, count, rules.max_queues)
        self._queues.add(declaration.name)

    def bind(self, binding: model.BindingDefinition) -> None:
        """Check a binding; one with a missing end is skipped. :raises Refused: if it cannot be created."""
        source, name = self._source(binding.source), binding.destination
        ends = self._has_queue if binding.destination_type == "queue" else self._will_have_exchange
        if source is None or not ends(name):
            return
        require_binding_key(binding.routing_key)
        require_arguments(f"binding from exchange '{source.name}' in vhost '{self.name}'", binding.arguments)
        candidate = Binding(source, self._throwaway_queue, binding.routing_key, binding.arguments)
        try:
            source.type.bind(candidate)
            source.type.unbind(candidate)
        except Refused:
            raise
        except BaseException as error:  # the exchange type may come from a plugin
            failed = f"exchange type '{source.type_name}' failed to bind '{name}': {described(error)}"
            raise PreconditionFailed(failed) from None
        if not self._has_binding(binding):
            count = len(self._bindings) + (self._vhost.bindings.count if self._vhost is not None else 0)
            require_room_for_binding(self.name, self.limits, count, self._broker.queue_rules.max_bindings)
            self._bindings.add(_identity(binding))

    def _has_binding(self, binding: model.BindingDefinition) -> bool:
        """Return whether a binding exists or was added by the definitions checked so far."""
        if _identity(binding) in self._bindings:
            return True
        if self._vhost is None:
            return False
        source = self._vhost.exchange_by_name.get(binding.source)
        by_name = self._vhost.queue_by_name if binding.destination_type == "queue" else self._vhost.exchange_by_name
        destination = by_name.get(binding.destination)
        if source is None or destination is None:
            return False
        return self._vhost.bindings.find(source, destination, binding.routing_key, binding.arguments) is not None

    def _has_queue(self, name: str) -> bool:
        return name in self._queues or (self._vhost is not None and name in self._vhost.queue_by_name)

    def _existing_exchange(self, name: str) -> Exchange | None:
        return self._vhost.exchange_by_name.get(name) if self._vhost is not None else None

    def _will_have_exchange(self, name: str) -> bool:
        return name in self._exchanges or self._existing_exchange(name) is not None

    def _source(self, name: str) -> Exchange | None:
        """Return a throwaway exchange of this name for checking bindings; ``None`` if none will exist."""
        if name not in self._exchanges:
            existing = self._existing_exchange(name)
            if existing is None or existing.inert_reason:
                return None
            self._exchanges[name] = self._created(
                ExchangeDeclaration(self.name, name, existing.type_name, arguments=existing.arguments)
            )
        return self._exchanges[name]

    def _created(self, declaration: ExchangeDeclaration) -> Exchange:
        type = declaration.type
        factory = factory_of(self._types, type, declaration.arguments)
        try:
            created = factory(declaration.arguments)
        except Refused:
            raise
        except BaseException as error:  # the exchange type may come from a plugin
            failed = f"exchange type '{type}' failed to make exchange '{declaration.name}': {described(error)}"
            raise PreconditionFailed(failed) from None
        return Exchange(self.name, declaration.name, type, created)


def _identity(binding: model.BindingDefinition) -> tuple[str, ...]:
    arguments = dumps_key([binding.arguments]).decode()
    return binding.source, binding.destination_type, binding.destination, binding.routing_key, arguments
