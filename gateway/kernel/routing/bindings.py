"""All bindings of a virtual host, indexed by source and by destination, and stored."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained
from gateway.kernel.errors import PreconditionFailed, Refused
from gateway.kernel.events import Event, Events
from gateway.kernel.faults import Faults, described
from gateway.kernel.journal.changes import Removed
from gateway.kernel.journal.entity_codec import require_writable, writable
from gateway.kernel.journal.records.topology import BindingRecord
from gateway.kernel.messages.message import Arguments
from gateway.kernel.routing.binding import Binding, Destination
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.routing.exchange_identity import ExchangeIdentity
from gateway.kernel.settings.user_counters import UserTally

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: The maximum number of bindings removed in one turn with their queue or exchange; more are removed in several turns.
MOST_AT_ONCE: Final = 256

#: Bindings removed between two readings of the clock.
_STEP: Final = 16


class Bindings:
    """Owns the bindings of one virtual host, and updates the index of each exchange type.

    ``require_room`` checks a user's limit; ``by_user`` counts bindings. ``changed`` is called after every change, to
    clear cached routes. ``on_abandoned`` is called with an auto-delete exchange that lost its last binding (R28).
    """

    def __init__(
        self,
        journal: "Journal",
        events: Events,
        changed: Callable[[], None],
        faults: Faults,
        by_user: UserTally,
    ) -> None:
        self._journal = journal
        self._events = events
        self._changed = changed
        self._faults = faults
        self._by_user = by_user
        self.on_abandoned: Callable[[Exchange], None] = lambda exchange: None
        self._by_source: dict[ExchangeIdentity, dict[object, Binding]] = {}
        self._by_destination: dict[Destination, dict[Binding, Exchange]] = {}  # each binding with its source
        self._unheeded: set[Binding] = set()
        self.count = 0
        self.require_room: Callable[[str], None] = lambda user: None

    def release(self) -> None:
        """Release the callbacks: the virtual host was deleted."""
        self.on_abandoned = lambda exchange: None
        self.require_room = lambda user: None

    def __iter__(self) -> Iterator[Binding]:
        for bindings in self._by_source.values():
            yield from bindings.values()

    def of(self, source: ExchangeIdentity) -> list[Binding]:
        """Return the bindings of a source."""
        return list(self._by_source.get(source, {}).values())

    def count_from(self, source: ExchangeIdentity) -> int:
        """Return the number of bindings of a source."""
        return len(self._by_source.get(source, ()))

    def to(self, destination: Destination) -> list[Binding]:
        """Return the bindings of a destination."""
        return list(self._by_destination.get(destination, ()))

    def between(self, source: Exchange, destination: Destination) -> list[Binding]:
        """Return the bindings between two ends: a few of those that either may have."""
        starting, ending = self._by_source.get(source, {}), self._by_destination.get(destination, {})
        if len(starting) < len(ending):
            return [each for each in starting.values() if each.destination is destination]
        return [each for each, start in ending.items() if start is source]

    def has_any(self, source: ExchangeIdentity) -> bool:
        """Return whether anything is bound to a source."""
        return bool(self._by_source.get(source))

    def holds(self, binding: Binding) -> bool:
        """Return whether a binding still exists."""
        return binding in self._by_destination.get(binding.destination, ())

    def is_unheeded(self, binding: Binding) -> bool:
        """Return whether the exchange type refused a binding, which is then without effect."""
        return binding in self._unheeded

    def replace_unheeded(self, source: ExchangeIdentity, unheeded: set[Binding]) -> None:
        """Set the bindings without effect of an exchange whose type was replaced."""
        formerly = {binding for binding in self._unheeded if binding.source is source} if self._unheeded else set()
        self._unheeded -= formerly
        for binding in unheeded:
            if self.holds(binding):
                self._unheeded.add(binding)
                if binding not in formerly:
                    self._events.emit(_event("binding.inert", binding, reason="the exchange type refuses it"))

    def find(
        self, source: ExchangeIdentity, destination: Destination, routing_key: str, arguments: Arguments
    ) -> Binding | None:
        """Return an existing binding with these parameters."""
        key = Binding(source, destination, routing_key, arguments).key()
        return self._by_source.get(source, {}).get(key)

    def declare(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Arguments, user: str = ""
    ) -> Binding:
        """Return the binding with these parameters; create it if it does not exist (R7).

        :raises PreconditionFailed: when the exchange type refuses it, or it cannot be stored.
        """
        require_writable(arguments)
        binding = self.find(source, destination, routing_key, arguments)
        if binding is None:
            rule = Binding(source, destination, routing_key, arguments, user)
            self.require_room(user)
            put = writable(_record(rule)) if _is_recorded(rule) else None
            binding = self.install(source, destination, routing_key, arguments, user)
            if put is not None:
                self._journal.record(put)
            self._events.emit(_event("binding.created", binding))
            if source.interceptor is not None:
                source.interceptor.bound(binding)
        return binding

    def install(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Arguments, user: str = ""
    ) -> Binding:
        """Build a binding.

        :raises PreconditionFailed: when the exchange type refuses it, or fails.
        """
        binding = Binding(source, destination, routing_key, arguments, user)
        try:
            source.type.bind(binding)
        except Refused:
            raise
        except BaseException as error:  # plugin code: only this binding fails
            self._contain("bind", source, error)
            failed = f"exchange type '{source.type_name}' failed to bind '{destination.name}': {described(error)}"
            raise PreconditionFailed(failed) from None
        return self._keep(binding, source)

    def restore(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Arguments, user: str = ""
    ) -> Binding:
        """Build a stored binding. One that the exchange type refuses is kept without effect."""
        try:
            return self.install(source, destination, routing_key, arguments, user)
        except Refused as refusal:
            binding = self._keep(Binding(source, destination, routing_key, arguments, user), source)
            self._unheeded.add(binding)
            self._events.emit(_event("binding.inert", binding, reason=str(refusal)))
            return binding

    def _keep(self, binding: Binding, source: Exchange) -> Binding:
        self._by_source.setdefault(source, {})[binding.key()] = binding
        self._by_destination.setdefault(binding.destination, {})[binding] = source
        self.count += 1
        self._by_user.added(binding.user)
        self._changed()
        return binding

    def removing(self, end: Destination) -> Iterator[None]:
        """Return the steps that remove every current binding of a queue or exchange."""
        found = self.to(end)
        if isinstance(end, ExchangeIdentity):
            found += self.of(end)
        return self._removing(found)

    def _removing(self, found: list[Binding]) -> Iterator[None]:
        for number, binding in enumerate(drained(found)):
            if binding in self._by_destination.get(binding.destination, ()):
                self.remove(binding)
            if number % _STEP == 0:
                yield

    def count_at(self, end: Destination) -> int:
        """Return the number of bindings of a queue or exchange."""
        starting = self._by_source.get(end, ()) if isinstance(end, ExchangeIdentity) else ()
        return len(self._by_destination.get(end, ())) + len(starting)

    def remove(self, binding: Binding) -> None:
        """Remove a binding."""
        destination = binding.destination
        source = self._by_destination[destination][binding]
        self._unbind(binding, source)
        del self._by_source[source][binding.key()]
        self.count -= 1
        self._by_user.removed(binding.user)
        if not self._by_source[source]:
            del self._by_source[source]
        del self._by_destination[destination][binding]
        if not self._by_destination[destination]:
            del self._by_destination[destination]
        self._changed()
        if _is_recorded(binding):
            record = _record(binding)
            self._journal.record(Removed(record.kind, record.key))
        self._events.emit(_event("binding.deleted", binding))
        if source.is_auto_delete and source not in self._by_source:
            self.on_abandoned(source)

    def _unbind(self, binding: Binding, source: Exchange) -> None:
        """Remove a binding from the index of its exchange type, if it is there."""
        if binding in self._unheeded:
            self._unheeded.remove(binding)
            return
        try:
            source.type.unbind(binding)
        except BaseException as error:  # plugin code: the binding is removed even if this fails
            self._contain("unbind", source, error)

    def _contain(self, verb: str, source: Exchange, error: BaseException) -> None:
        function = getattr(type(source.type), verb, None)
        self._faults.contain_in_type(verb, error, source.vhost_name, source.name, source.type_name, function)


def _is_recorded(binding: Binding) -> bool:
    """Return whether a binding is stored: both ends are durable, and the queue is not exclusive (R27)."""
    return binding.is_durable and getattr(binding.destination, "owner", None) is None


def _record(binding: Binding) -> BindingRecord:
    kind = "exchange" if isinstance(binding.destination, ExchangeIdentity) else "queue"
    source, destination = binding.source, binding.destination
    return BindingRecord(
        source.vhost_name,
        source.name,
        kind,
        destination.name,
        binding.routing_key,
        dict(binding.arguments),
        binding.user,
    )


def _event(name: str, binding: Binding, **more: object) -> Event:
    details = {
        "source": binding.source.name,
        "destination_kind": "exchange" if isinstance(binding.destination, ExchangeIdentity) else "queue",
        "routing_key": binding.routing_key,
        "arguments": binding.arguments,
        **more,
    }
    return Event(name, binding.source.vhost_name, binding.destination.name, details)
