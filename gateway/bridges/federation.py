"""The federation links of the node: one for each federated exchange or queue and each of its upstreams."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

from twisted.internet.defer import Deferred

from gateway.bridges.amqp_connection import AmqpDialer
from gateway.bridges.exchange_federation import ExchangeLink
from gateway.bridges.link import Link, LinkState
from gateway.bridges.queue_federation import QueueLink
from gateway.bridges.upstreams import UPSTREAM, UPSTREAM_SET, Upstream, upstreams_of
from gateway.kernel.broker.broker import Broker
from gateway.kernel.clock import Timer, drained
from gateway.kernel.events import Event
from gateway.kernel.settings.policies import EXCHANGE, kind_of_queue
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog

_log: Final = StructuredLog("bridges")

#: Seconds between two checks for consumers at federated queues.
_CONSUMERS_EVERY_S: Final = 0.1

_POLICY_EVENTS: Final = frozenset({"policy.set", "policy.cleared"})
_PARAMETER_EVENTS: Final = frozenset({"parameter.set", "parameter.cleared"})
_BINDING_EVENTS: Final = frozenset({"binding.created", "binding.deleted"})

#: The fields of a status that an event of a change repeats.
_REPORTED: Final = ("status", "error", "upstream", "uri", "type", "upstream_exchange", "upstream_queue")

_STATUS: Final = {LinkState.STARTING: "starting", LinkState.RUNNING: "running", LinkState.TERMINATED: "error"}


class Federated(NamedTuple):
    """An exchange or a queue."""

    vhost: str
    kind: str
    name: str


class _Running(NamedTuple):
    end: ExchangeLink | QueueLink
    link: Link


class Federation:
    """Owns the links. They run from ``start`` to ``stop`` and follow policies, parameters and entities."""

    def __init__(self, broker: Broker, dialer: AmqpDialer) -> None:
        self._broker = broker
        self._dialer = dialer
        self._links: dict[Federated, dict[str, _Running]] = {}
        self._is_running = False
        self._timer: Timer | None = None
        broker.events.subscribe(self._changed, "binding", "exchange", "parameter", "policy", "queue")

    def start(self) -> None:
        """Start the links of all federated exchanges and queues."""
        self._is_running = True
        for name in self._broker.vhost_by_name:
            self._follow_vhost(name)

    def stop(self) -> None:
        """Close all links; the queues and exchanges that they declared at their upstreams stay."""
        self._is_running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for running in self._links.values():
            for each in running.values():
                each.link.stop()
        self._links.clear()

    def restart(self, vhost: str, id: str) -> bool:
        """Close a link and open it again; return whether it exists."""
        for federated, running in self._links.items():
            for upstream, each in running.items():
                if federated.vhost == vhost and _id_of(federated, upstream) == id:
                    each.link.stop()
                    each.link.start()
                    return True
        return False

    def statuses(self) -> Iterator[Mapping[str, Any]]:
        """Yield the status of each link, with RabbitMQ's names."""
        for federated, running in sorted(self._links.items()):
            for upstream, each in sorted(running.items()):
                yield self._status(federated, upstream, each)

    # Changes

    def _changed(self, event: Event) -> None:
        if not self._is_running:
            return
        if event.name in _BINDING_EVENTS:
            for each in self._links.get(Federated(event.vhost, "exchange", str(event.details["source"])), {}).values():
                if isinstance(each.end, ExchangeLink):
                    each.end.bindings_changed()
        elif event.name in _POLICY_EVENTS or self._is_of_upstreams(event):
            self._follow_vhost(event.vhost)
        elif event.name.startswith(("exchange.", "queue.")) and event.name.endswith((".created", ".deleted")):
            federated = Federated(event.vhost, event.name.partition(".")[0], event.subject)
            if federated in self._links or self._has_upstreams(event.vhost):
                self._broker.clock.background.add_later(self._following([federated]))

    def _is_of_upstreams(self, event: Event) -> bool:
        return event.name in _PARAMETER_EVENTS and event.details.get("component") in (UPSTREAM, UPSTREAM_SET)

    def _has_upstreams(self, vhost: str) -> bool:
        return any((each.vhost, each.component) == (vhost, UPSTREAM) for each in self._broker.parameters.values())

    def _follow_vhost(self, name: str) -> None:
        """Start and stop links of a virtual host as its policies and upstreams say, in later turns."""
        self._broker.clock.background.add_later(self._following(self._of_vhost(name)))

    def _of_vhost(self, name: str) -> Iterator[Federated]:
        """Yield what has links, then everything that may need some; of 100,000 queues only the names are copied."""
        known = [federated for federated in self._links if federated.vhost == name]
        vhost = self._broker.vhost_by_name.get(name)
        exchanges, queues = list[str](), list[str]()
        if vhost is not None and self._has_upstreams(name):
            exchanges, queues = list(vhost.exchange_by_name), list(vhost.queue_by_name)
        yield from drained(known)
        yield from (Federated(name, "exchange", exchange) for exchange in drained(exchanges) if exchange)
        yield from (Federated(name, "queue", queue) for queue in drained(queues))

    def _following(self, changed: Iterable[Federated]) -> Iterator[None]:
        for federated in changed:
            if self._is_running:
                self._follow(federated)
            yield

    def _follow(self, federated: Federated) -> None:
        """Start and stop the links of one exchange or queue."""
        wanted = {upstream.name: upstream for upstream in self._upstreams(federated)}
        running = self._links.get(federated, {})
        for name in [name for name, each in running.items() if wanted.get(name) != each.end.upstream]:
            self._end(running.pop(name), cleans_up=name not in wanted)
            details = {"upstream": name, federated.kind: federated.name}
            self._broker.events.emit(Event("federation.link.removed", federated.vhost, name, details))
        for name, upstream in wanted.items():
            if name not in running:
                running[name] = self._started(federated, upstream)
        if running:
            self._links[federated] = running
            self._watch_consumers()
        else:
            self._links.pop(federated, None)

    def _upstreams(self, federated: Federated) -> list[Upstream]:
        vhost = self._broker.vhost_by_name.get(federated.vhost)
        policy = None if vhost is None else _policy_of(vhost, federated)
        if policy is None:
            return []

        def matches(pattern: str, name: str) -> bool:
            return self._broker.compile_pattern(pattern).matches(name)

        return list(upstreams_of(policy.definition, federated.vhost, self._broker.parameters, matches))

    def _started(self, federated: Federated, upstream: Upstream) -> _Running:
        broker = self._broker
        vhost = broker.vhost_by_name[federated.vhost]
        end: ExchangeLink | QueueLink
        if federated.kind == "exchange":
            exchange = vhost.exchange_by_name[federated.name]
            end = ExchangeLink(vhost, exchange, upstream, self._dialer, broker.clock, broker.node)
        else:
            end = QueueLink(vhost, vhost.queue_by_name[federated.name], upstream, self._dialer, broker.clock)
        logged = {"kind": f"federated {federated.kind}", "vhost": federated.vhost, "upstream": upstream.name}
        link = Link(federated.name, end.open, upstream.reconnect_delay_s, broker.clock, _log, **logged)
        running = _Running(end, link)
        link.on_change = partial(self._report, federated, upstream.name, running)
        link.start()
        return running

    def _report(self, federated: Federated, upstream: str, running: _Running) -> None:
        """Emit the event of a change of status, with RabbitMQ's names."""
        status = self._status(federated, upstream, running)
        details = {name: status[name] for name in _REPORTED if name in status}
        details |= {federated.kind: federated.name}
        self._broker.events.emit(Event("federation.link.status", federated.vhost, upstream, details))

    def _end(self, running: _Running, *, cleans_up: bool) -> None:
        if not cleans_up:
            running.link.stop()
            return
        running.link.release()
        cleaning: Deferred[None] = Deferred.fromCoroutine(running.end.clean_up())
        cleaning.addErrback(lambda failure: None)  # the connection ended: there is nothing to clean up with
        cleaning.addCallback(lambda _: running.link.stop())

    def _watch_consumers(self) -> None:
        if self._timer is None and any(federated.kind == "queue" for federated in self._links):
            self._timer = self._broker.clock.call_later(_CONSUMERS_EVERY_S, self._follow_consumers)

    def _follow_consumers(self) -> None:
        self._timer = None
        for running in self._links.values():
            for each in running.values():
                if isinstance(each.end, QueueLink):
                    each.end.follow_consumers()
        self._watch_consumers()

    def _status(self, federated: Federated, upstream: str, running: _Running) -> Mapping[str, Any]:
        end, link = running
        status: dict[str, Any] = {
            "node": self._broker.node,
            federated.kind: federated.name,
            f"upstream_{federated.kind}": end.remote_name,
            "type": federated.kind,
            "vhost": federated.vhost,
            "upstream": upstream,
            "id": _id_of(federated, upstream),
            "status": _STATUS[link.state],
            "uri": end.uri.shown,
            "timestamp": link.since,
        }
        if link.state is LinkState.TERMINATED:
            status["error"] = link.reason
        if link.transfer is not None:
            status |= {"forwarded": link.transfer.forwarded, "pending": link.transfer.pending}
        return status


def _policy_of(vhost: VirtualHost, federated: Federated) -> Any:
    """Return the policy of an exchange or queue that may be federated, else ``None``."""
    if federated.kind == "exchange":
        exchange = vhost.exchange_by_name.get(federated.name)
        if exchange is None or exchange.is_internal:
            return None
        return vhost.policies.settings(EXCHANGE, exchange.name, exchange.arguments).policy
    queue = vhost.queue_by_name.get(federated.name)
    if queue is None or queue.is_stream or queue.owner is not None or queue.is_deleted:
        return None
    return vhost.policies.settings(kind_of_queue(queue.arguments), queue.name, queue.arguments).policy


def _id_of(federated: Federated, upstream: str) -> str:
    """Return the identifier of a link in listings."""
    return sha256("\0".join((*federated, upstream)).encode()).hexdigest()[:8]
