"""The shovels of the node: one for each parameter of the component ``shovel``, and their status."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from gateway.bridges.component_parameters import BridgeKey, ComponentParameters
from gateway.bridges.link import Link, LinkState
from gateway.bridges.shovel import Shovel
from gateway.bridges.shovel_definition import COMPONENT, shovel_of
from gateway.bridges.shovel_ends import ShovelEnds
from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.logs import StructuredLog

_log: Final = StructuredLog("bridges")

#: The keys of a definition that a status repeats.
_SHOWN: Final = (
    *("src-exchange", "src-exchange-key", "src-queue", "src-topic", "src-destination"),
    *("dest-exchange", "dest-exchange-key", "dest-queue", "dest-topic", "dest-destination"),
)

#: The fields of a status that an event of a change repeats.
_REPORTED: Final = (
    *("reason", "src_uri", "src_protocol", "src_queue", "src_exchange", "src_exchange_key"),
    *("dest_uri", "dest_protocol", "dest_queue", "dest_exchange", "dest_exchange_key"),
)


class Shovels:
    """Owns the shovels. They run from ``start`` to ``stop`` and follow their parameters.

    ``touch`` schedules the end of a turn after a shovel has removed its parameter.
    """

    def __init__(self, broker: Broker, ends: Mapping[str, ShovelEnds], touch: Callable[[], None]) -> None:
        self._broker = broker
        self._ends = ends
        self._touch = touch
        self._links: dict[BridgeKey, Link] = {}
        self._shovels: dict[BridgeKey, Shovel] = {}
        self._parameters = ComponentParameters(broker, COMPONENT, self._start, self._stop)

    def start(self) -> None:
        """Start the shovels of the stored parameters."""
        self._parameters.start()

    def stop(self) -> None:
        """Stop all shovels."""
        self._parameters.stop()
        for key in list(self._links):
            self._stop(key)

    def restart(self, vhost: str, name: str) -> bool:
        """Close the ends of a shovel and open them again; return whether it exists."""
        record = self._broker.parameters.get((vhost, COMPONENT, name))
        if record is None:
            return False
        self._start(record)
        return True

    def delete(self, vhost: str, name: str) -> bool:
        """Remove the parameter of a shovel, which stops it; return whether it exists."""
        record = self._broker.parameters.get((vhost, COMPONENT, name))
        if record is not None:
            self._broker.parameters.remove(record)
        return record is not None

    def statuses(self) -> Iterator[Mapping[str, Any]]:
        """Yield the status of each shovel, with RabbitMQ's names."""
        for key, link in sorted(self._links.items()):
            yield self._status(key, link)

    def _start(self, record: ParameterRecord) -> None:
        key = (record.vhost, record.name)
        self._stop(key)
        clock = self._broker.clock
        try:
            definition = shovel_of(record)
        except PreconditionFailed as refusal:  # stored by an earlier version with other rules
            link = self._links[key] = Link(record.name, _never, 0, clock, _log)
            link.fail(" ".join(str(refusal).split()))
            return
        shovel = Shovel(definition, self._ends, clock, self._broker.node, partial(self._done, key))
        delay_s = definition.reconnect_delay_s
        link = Link(record.name, shovel.open, delay_s, clock, _log, kind=COMPONENT, vhost=record.vhost)
        self._links[key], self._shovels[key] = link, shovel
        link.on_change = partial(self._report, key, link)
        link.start()

    def _stop(self, key: BridgeKey) -> None:
        self._shovels.pop(key, None)
        link = self._links.pop(key, None)
        if link is not None:
            link.on_change = lambda: None
            link.stop()
            self._broker.events.emit(Event("shovel.worker.removed", *key))

    def _report(self, key: BridgeKey, link: Link) -> None:
        """Emit the event of a change of status, with RabbitMQ's names."""
        status = self._status(key, link)
        details = {name: status[name] for name in _REPORTED if name in status}
        self._broker.events.emit(Event("shovel.worker.status", *key, {"status": link.state.value, **details}))

    def _done(self, key: BridgeKey) -> None:
        """Remove a shovel that has moved as many messages as it was to move, after the current call."""

        def remove() -> None:
            if key in self._links:
                _log.info("shovel has moved all messages it was to move", shovel=key[1], vhost=key[0])
                self.delete(*key)
                self._touch()

        self._broker.clock.call_later(0, remove)

    def _status(self, key: BridgeKey, link: Link) -> Mapping[str, Any]:
        status: dict[str, Any] = {
            "node": self._broker.node,
            "timestamp": link.since,
            "name": key[1],
            "vhost": key[0],
            "type": "dynamic",
            "state": link.state.value,
        }
        if link.state is LinkState.TERMINATED:
            return {**status, "reason": link.reason}
        shovel = self._shovels[key]
        definition = shovel.definition
        return {
            **status,
            "src_uri": shovel.src_uri.shown,
            "src_protocol": definition.src_protocol,
            "dest_uri": shovel.dest_uri.shown,
            "dest_protocol": definition.dest_protocol,
            **{name.replace("-", "_"): definition.text(name) for name in _SHOWN if name in definition.value},
            **_transfer_fields(link),
        }


def _transfer_fields(link: Link) -> Mapping[str, Any]:
    transfer = link.transfer
    if transfer is None:
        return {}
    return {
        "blocked_status": "blocked" if transfer.is_blocked else "running",
        "remaining": "unlimited" if transfer.remaining is None else transfer.remaining,
        "pending": transfer.pending,
        "forwarded": transfer.forwarded,
    }


async def _never(lost: object) -> Any:
    """The opener of a shovel with invalid settings, which is never started."""
