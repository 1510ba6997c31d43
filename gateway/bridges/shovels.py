"""The shovels of the node: one for each parameter of the component ``shovel``, and their status."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

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

ShovelKey = tuple[str, str]
"""Virtual host and name."""


class Shovels:
    """Owns the shovels. They run from ``start`` to ``stop`` and follow their parameters.

    ``touch`` schedules the end of a turn after a shovel has removed its parameter.
    """

    def __init__(self, broker: Broker, ends: Mapping[str, ShovelEnds], touch: Callable[[], None]) -> None:
        self._broker = broker
        self._ends = ends
        self._touch = touch
        self._links: dict[ShovelKey, Link] = {}
        self._shovels: dict[ShovelKey, Shovel] = {}
        self._is_running = False
        broker.events.subscribe(self._changed)

    def start(self) -> None:
        """Start the shovels of the stored parameters."""
        self._is_running = True
        for record in self._records():
            self._start(record)

    def stop(self) -> None:
        """Stop all shovels."""
        self._is_running = False
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
            self._broker.remove_parameter(record)
        return record is not None

    def statuses(self) -> Iterator[Mapping[str, Any]]:
        """Yield the status of each shovel, with RabbitMQ's names."""
        for key, link in sorted(self._links.items()):
            yield self._status(key, link)

    def _records(self) -> list[ParameterRecord]:
        return [record for record in self._broker.parameters.values() if record.component == COMPONENT]

    def _changed(self, event: Event) -> None:
        if not self._is_running or event.details.get("component") != COMPONENT:
            return
        if event.name == "parameter.set":
            self._start(self._broker.parameters[event.vhost, COMPONENT, event.subject])
        elif event.name == "parameter.cleared":
            self._stop((event.vhost, event.subject))

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
        link.start()

    def _stop(self, key: ShovelKey) -> None:
        self._shovels.pop(key, None)
        link = self._links.pop(key, None)
        if link is not None:
            link.stop()

    def _done(self, key: ShovelKey) -> None:
        """Remove a shovel that has moved as many messages as it was to move, after the current call."""

        def remove() -> None:
            if key in self._links:
                _log.info("shovel has moved all messages it was to move", shovel=key[1], vhost=key[0])
                self.delete(*key)
                self._touch()

        self._broker.clock.call_later(0, remove)

    def _status(self, key: ShovelKey, link: Link) -> Mapping[str, Any]:
        status: dict[str, Any] = {
            "node": self._broker.node,
            "timestamp": datetime.fromtimestamp(link.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S"),
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
