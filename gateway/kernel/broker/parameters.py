"""The runtime parameters of a node: settings of plugins and bridges that operators change while it runs."""

from collections.abc import Callable, Iterator, Mapping

from gateway.kernel.broker.entity_checks import ParameterCheck, require_valid_parameter
from gateway.kernel.clock import drained
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Removed
from gateway.kernel.journal.entity_codec import writable
from gateway.kernel.journal.journal import Journal
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.message import Value


class Parameters(Mapping[tuple[Value, ...], ParameterRecord]):
    """The runtime parameters by the keys of their records: virtual host (empty for global ones), component and name.

    ``components`` maps the components that have parameters to their validation. ``are_global_copies``: the leader of
    another cell of a cluster changes those of no virtual host, and their changes come by ``take``.
    """

    def __init__(self, journal: Journal, emit: Callable[[Event], None]) -> None:
        self.components: dict[str, ParameterCheck] = {}
        self.are_global_copies = False
        self._journal = journal
        self._emit = emit
        self._by_key: dict[tuple[Value, ...], ParameterRecord] = {}

    def __getitem__(self, key: tuple[Value, ...]) -> ParameterRecord:
        return self._by_key[key]

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def require_valid(self, record: ParameterRecord) -> None:
        """Validate a parameter. :raises PreconditionFailed: when its name or value is invalid."""
        require_valid_parameter(record)
        if (check := self.components.get(record.component)) is not None:
            check(record)

    def put(self, record: ParameterRecord) -> None:
        """Set a parameter. :raises PreconditionFailed: when its name or value is invalid."""
        self._require_own(record)
        self.require_valid(record)
        put = writable(record)
        self._by_key[record.key] = record
        self._journal.record(put)
        self._emit(Event("parameter.set", record.vhost, record.name, {"component": record.component}))

    def remove(self, record: ParameterRecord) -> None:
        """Remove a parameter. :raises PreconditionFailed: when another cell of the cluster has it."""
        self._require_own(record)
        del self._by_key[record.key]
        self._journal.record(Removed(record.kind, record.key))
        self._emit(Event("parameter.cleared", record.vhost, record.name, {"component": record.component}))

    def _require_own(self, record: ParameterRecord) -> None:
        if self.are_global_copies and not record.vhost:
            raise PreconditionFailed("global parameters are changed by the leader of the first cell of the cluster")

    def take(self, key: tuple[Value, ...], record: ParameterRecord | None) -> None:
        """Take over a change of a global parameter: its new record, or ``None`` if it was removed."""
        known = self._by_key.pop(key, None)
        if record is not None:
            self._by_key[key] = record
            self._emit(Event("parameter.set", record.vhost, record.name, {"component": record.component}))
        elif known is not None:
            self._emit(Event("parameter.cleared", known.vhost, known.name, {"component": known.component}))

    def restore(self, record: ParameterRecord) -> None:
        """Add a stored parameter."""
        self._by_key.setdefault(record.key, record)

    def removing_vhost(self, name: str) -> Iterator[None]:
        """Return the steps that remove the parameters of a virtual host."""
        for parameter in drained(list(self._by_key.values())):
            if parameter.vhost == name and self._by_key.get(parameter.key) is parameter:
                self.remove(parameter)
            yield
