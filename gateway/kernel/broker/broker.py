"""The kernel of one node: virtual hosts, users, alarms and the journal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gateway.kernel.alarms import Alarms
from gateway.kernel.archives.archive import ArchiveRules
from gateway.kernel.archives.archives import ArchiveContext
from gateway.kernel.archives.message_traces import TraceRules
from gateway.kernel.backlog.memory_budget import MemoryBudget
from gateway.kernel.broker.audit_log import AuditLog, AuditRules
from gateway.kernel.broker.connections import Connections
from gateway.kernel.broker.directory import Directory
from gateway.kernel.broker.entity_checks import require_valid_vhost
from gateway.kernel.broker.flow_updates import FlowUpdates
from gateway.kernel.broker.parameters import Parameters
from gateway.kernel.broker.plugins_in_use import PluginsInUse
from gateway.kernel.broker.store_reports import StoreReports
from gateway.kernel.broker.topology_audit import TopologyAudit
from gateway.kernel.broker.vhost_deletions import VhostDeletions
from gateway.kernel.clock import drained
from gateway.kernel.errors import NotAllowed, PreconditionFailed
from gateway.kernel.events import Event, Events
from gateway.kernel.features.plugin_feature import settings_of
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.entity_codec import writable
from gateway.kernel.journal.journal import Journal
from gateway.kernel.journal.records.progress import CleanStopRecord
from gateway.kernel.journal.records.topology import PolicyRecord, VhostRecord
from gateway.kernel.messages.bounds import require_arguments
from gateway.kernel.messages.message import HeaderFormat, Value
from gateway.kernel.patterns import Compile
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.settings.limits import VHOST_LIMITS, require_valid_limits
from gateway.kernel.settings.policy_checks import NO_ARCHIVES, require_valid_policy
from gateway.kernel.settings.user_counters import UserTallies
from gateway.kernel.traffic import VhostTraffic
from gateway.kernel.vhosts.context import NodeContext
from gateway.kernel.vhosts.dissolving import dissolve
from gateway.kernel.vhosts.plugins import PluginParts
from gateway.kernel.vhosts.queue_rules import QueueRules
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.kernel.workbench.workbench import Workbench, WorkbenchRules

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.store import Store
    from gateway.kernel.routing.exchange_type import ExchangeTypes
    from gateway.kernel.settings.offered_settings import OfferedSettings
    from gateway.kernel.vhosts.plugins import Plugins, VhostPlugins


class Broker:
    """Owns all state of one node. Uses no sockets and no threads; time and storage come through ports.

    ``doubtful_up_to`` is the last position assigned when this node was last killed: messages up to there may have been
    delivered before. ``on_vhost`` is called with each virtual host while it is still empty. All queues share the memory
    budget ``reserve``. ``compile_pattern`` is the regular expression engine.
    """

    def __init__(
        self,
        store: "Store",
        clock: "Clock",
        formats: Mapping[str, HeaderFormat],
        plugins: "Plugins",
        *,
        node: str,
        compile_pattern: Compile,
        queue_rules: QueueRules | None = None,
        archive_rules: ArchiveRules | None = None,
        trace_rules: TraceRules | None = None,
        audit_rules: AuditRules | None = None,
        workbench_rules: WorkbenchRules | None = None,
    ) -> None:
        self.node = node
        self.clock = clock
        self.compile_pattern = compile_pattern
        self._plugins = plugins
        self._queue_id = 0
        self.events = Events()
        self.journal = Journal(store, clock, formats)
        self.connections = Connections()
        self.plugins_in_use = PluginsInUse(node, self.events, self.journal.budget, self.connections, clock.background)
        self.faults = self.plugins_in_use.faults
        self.alarms = Alarms()
        self.audit = AuditLog(self.journal, self.events.emit, audit_rules or AuditRules())
        self.directory = Directory(self.journal.record, compile_pattern)
        self.user_tallies = UserTallies(self._limits_of_user)
        self.vhost_by_name: dict[str, VirtualHost] = {}
        self.on_vhost: Callable[[VirtualHost], None] = lambda vhost: None
        self.policies: dict[tuple[Value, ...], PolicyRecord] = {}
        self.parameters = Parameters(self.journal, self.events.emit)
        self.departed_traffic = VhostTraffic()
        self.doubtful_up_to = 0
        rules = workbench_rules or WorkbenchRules()
        self.workbench = Workbench(self.journal, clock, rules, self.next_queue_id, self._queue)
        self._deletions = VhostDeletions(clock.background, self.connections, self._removing_settings, self._forget)
        self.queue_rules = queue_rules or QueueRules()
        self.reserve = MemoryBudget(self.queue_rules.reserve)
        self.archive_context = ArchiveContext(archive_rules or ArchiveRules(), trace_rules or TraceRules())
        self.store_reports = StoreReports(self.journal, self.alarms, self.connections, self.events)
        self._connect_parts()
        store.listen(self.store_reports)

    def _connect_parts(self) -> None:
        """Connect the parts: events with their listeners, contained errors, and the limits that block publishers."""
        self.events.on_fault = partial(self.faults.contain, "event listener")
        self.events.acting = self.clock.background.acting
        self.events.subscribe(TopologyAudit(self.audit, self.events.acting), "exchange", "queue", "binding")
        self.events.subscribe(self.workbench.forget_vhost, "vhost")
        self.directory.emit = self.alarms.emit = self.events.emit
        self.directory.on_change(self._forget_permissions)
        self.directory.run = self.clock.background.add
        self.connections.listeners = self.plugins_in_use.event_listeners
        self.journal.on_fault = partial(self.faults.contain, "turn")
        self.journal.on_set_aside = self.store_reports.on_set_aside
        flow_updates = FlowUpdates(self.connections, partial(self.clock.call_later, 0))
        self.journal.disk_backlog.on_change = flow_updates.update_all
        self.archive_context.blocked_publishers.on_change = self.connections.update_flow_control_of
        self.alarms.subscribe(flow_updates.update_all)
        self.clock.background.is_paused = self.journal.delays_long_work

    # Virtual hosts

    def vhost(self, name: str) -> VirtualHost:
        """Return a virtual host. :raises NotAllowed: when it does not exist (R2)."""
        vhost = self.vhost_by_name.get(name)
        if name in self._deletions:
            raise NotAllowed(f"vhost {name} is being deleted")
        if vhost is None:
            raise NotAllowed(f"vhost {name} not found")
        return vhost

    def _queue(self, vhost: str, name: str) -> QueueLike | None:
        found = self.vhost_by_name.get(vhost)
        return None if found is None else found.queue_by_name.get(name)

    def offers_to(self, name: str) -> "tuple[ExchangeTypes, OfferedSettings]":
        """Return the exchange types and queue settings of a virtual host, or those it would have if it were created."""
        vhost = self.vhost_by_name.get(name)
        if vhost is not None:
            return vhost.exchange_types, vhost.queue_features.settings
        view = self._plugins(name, {})
        return view.exchange_types, settings_of(view.queue_features, lambda feature_type, error: None)

    def declare_vhost(
        self,
        name: str,
        *,
        description: str = "",
        tags: Sequence[str] = (),
        default_queue_type: str = "",
        plugins: Mapping[str, Mapping[str, Value]] | None = None,
    ) -> VirtualHost:
        """Return the virtual host of this name; create it if it does not exist.

        ``default_queue_type`` is empty for the node's default.

        :raises PreconditionFailed: for an unknown queue type, or while a virtual host of this name is being deleted.
        """
        if name in self._deletions:
            raise PreconditionFailed(f"vhost '{name}' is being deleted, try again later")
        if name in self.vhost_by_name:
            return self.vhost_by_name[name]
        require_valid_vhost(name, description, tags, default_queue_type)
        enabled: dict[str, Value] = {plugin: dict(settings) for plugin, settings in (plugins or {}).items()}
        require_arguments(f"vhost '{name}'", enabled)
        record = VhostRecord(name, description, list(tags), default_queue_type, False, enabled, {})
        put = writable(record)
        vhost = self.install_vhost(record)
        self.journal.record(put)
        details = {"description": description, "tags": list(tags), "default_queue_type": default_queue_type}
        self.events.emit(Event("vhost.created", name, name, details))
        return vhost

    def install_vhost(self, record: VhostRecord) -> VirtualHost:
        """Build a virtual host from its record, with the plugins it enables."""
        view = self._plugins(record.name, record.plugins)
        vhost = VirtualHost(record, view.exchange_types, self._node_context())
        parts = self.plugins_in_use.add(vhost, view)
        self.on_vhost(vhost)
        self.vhost_by_name[record.name] = vhost
        self.plugins_in_use.use(vhost, view, parts)
        self.plugins_in_use.apply_tracing(vhost)
        return vhost

    def _node_context(self) -> NodeContext:
        return NodeContext(
            self.journal,
            self.clock,
            self.events,
            self.next_queue_id,
            self.queue_rules,
            self.reserve,
            self.archive_context,
            self.faults,
            self.user_tallies,
            self.compile_pattern,
        )

    def adopt_plugins(
        self, vhost: VirtualHost, recorded: Mapping[str, Value], view: "VhostPlugins", parts: PluginParts
    ) -> None:
        """Put other plugins of a virtual host in use, whose exchange types were swapped in this turn; store them."""
        self.plugins_in_use.use(vhost, view, parts)
        self._update_record(replace(vhost.record, plugins=dict(recorded)))
        vhost.invalidate_caches()

    def _limits_of_user(self, name: str) -> Mapping[str, Value]:
        user = self.directory.user(name)
        return {} if user is None else user.limits

    def delete_vhost(self, name: str) -> None:
        """Delete a virtual host with everything in it.

        :raises NotAllowed: when it does not exist.
        :raises PreconditionFailed: when it is protected.
        """
        vhost = self.vhost(name)
        if vhost.record.is_protected:
            raise PreconditionFailed(f"Refusing to delete virtual host '{name}' because it is protected from deletion")
        self._deletions.add(vhost)

    def _removing_settings(self, name: str) -> Iterator[None]:
        """Return the steps that remove the policies, parameters and permissions of a virtual host."""
        for policy in drained(list(self.policies.values())):
            if policy.vhost == name and self.policies.get(policy.key) is policy:
                self.remove_policy(policy)
            yield
        yield from self.parameters.removing_vhost(name)
        yield from self.directory.removing_vhost(name)

    def _forget(self, vhost: VirtualHost) -> None:
        """Remove a virtual host whose contents and settings were removed."""
        name = vhost.name
        self.events.emit(Event("vhost.deleted", name, name))
        del self.vhost_by_name[name]
        self.plugins_in_use.remove(vhost)
        dissolve(vhost)
        self.departed_traffic.take(vhost.traffic)
        self.journal.record(Removed("vhost", (name,)))

    def trace(self, name: str, is_on: bool) -> None:
        """Turn the tracers of a virtual host on or off. :raises NotAllowed: when it does not exist."""
        self._update_record(replace(self.vhost(name).record, tracing=is_on))
        self.plugins_in_use.apply_tracing(self.vhost(name))

    def trace_to_table(self, name: str, is_on: bool) -> None:
        """Start or stop recording the message events of a virtual host in its trace table.

        :raises NotAllowed: when it does not exist.
        :raises PreconditionFailed: when nothing can write the table.
        """
        if is_on and self.archive_context.tables is None:
            raise PreconditionFailed(NO_ARCHIVES)
        self._update_record(replace(self.vhost(name).record, trace_table=is_on))
        vhost = self.vhost(name)
        if vhost.trace_table.is_on != is_on:
            vhost.trace_table.set_enabled(is_on)
            self.plugins_in_use.apply_tracing(vhost)
            vhost.policy_applier.reapply_all()

    def trace_messages(self, name: str, sample: float) -> None:
        """Trace a fraction of the messages of a virtual host in memory, from 0 (off) to 1, until the node stops.

        :raises NotAllowed: when it does not exist.
        """
        vhost = self.vhost(name)
        vhost.message_traces.trace(sample)
        self.plugins_in_use.apply_tracing(vhost)
        vhost.policy_applier.reapply_all()

    def resume_archives(self, vhost: VirtualHost) -> None:
        """Resume archives and tracing where an earlier run of the node stopped; called once, after recovery."""
        if vhost.record.trace_table:
            vhost.trace_table.set_enabled(True)
            self.plugins_in_use.apply_tracing(vhost)
            vhost.policy_applier.reapply_all()
        vhost.archives.resume()

    def describe_vhost(
        self,
        name: str,
        description: str | None = None,
        tags: Sequence[str] | None = None,
        default_queue_type: str | None = None,
    ) -> None:
        """Update a virtual host's metadata; ``None`` leaves a field unchanged.

        A new default queue type applies to queues declared later.

        :raises NotAllowed: when it does not exist.
        :raises PreconditionFailed: for an unknown queue type.
        """
        known = self.vhost(name).record
        require_valid_vhost(name, description or "", tags or (), default_queue_type or "")
        self._update_record(
            replace(
                known,
                description=known.description if description is None else description,
                tags=known.tags if tags is None else list(tags),
                default_queue_type=known.default_queue_type if default_queue_type is None else default_queue_type,
            )
        )

    def limit_vhost(self, name: str, limits: Mapping[str, Value]) -> None:
        """Replace the limits of a virtual host.

        :raises NotAllowed: when it does not exist.
        :raises PreconditionFailed: when a limit is unknown or not a number.
        """
        require_valid_limits("limits", VHOST_LIMITS, limits)
        if self.vhost(name).record.limits == limits:
            return
        self._update_record(replace(self.vhost(name).record, limits=dict(limits)))
        self.events.emit(Event("vhost.limits.set" if limits else "vhost.limits.cleared", name, "limits", dict(limits)))

    def protect_vhost(self, name: str, is_protected: bool) -> None:
        """Set the deletion protection of a virtual host. :raises NotAllowed: when it does not exist."""
        self._update_record(replace(self.vhost(name).record, is_protected=is_protected))

    def _update_record(self, record: VhostRecord) -> None:
        """Replace and store the record of an existing virtual host."""
        vhost = self.vhost(record.name)
        if record != vhost.record:
            put = writable(record)
            vhost.update_record(record)
            self.journal.record(put)

    def next_queue_id(self) -> int:
        """Return a number that no durable queue has had."""
        self._queue_id += 1
        return self._queue_id

    def skip_queue_ids(self, highest: int) -> None:
        """Ensure that numbers up to ``highest`` are not assigned again."""
        self._queue_id = max(self._queue_id, highest)

    def permissions_changed(self, vhost_name: str) -> None:
        """Drop the cached permissions of all clients in a virtual host; harmless if it does not exist."""
        if (vhost := self.vhost_by_name.get(vhost_name)) is not None:
            vhost.invalidate_caches()

    def _forget_permissions(self, user: str) -> None:
        """Drop the cached permissions of all clients, and close the connections of a user that was deleted."""
        for vhost in self.vhost_by_name.values():
            vhost.invalidate_caches()
        if self.directory.user(user) is None:
            closing = self.connections.force_closes(f"user '{user}' is deleted", lambda peer: peer.user_name == user)
            self.clock.background.add(closing)

    # Policies

    def put_policy(self, record: PolicyRecord) -> None:
        """Set a policy; it applies to existing and later queues and exchanges.

        :raises NotAllowed: when its virtual host does not exist.
        :raises PreconditionFailed: when it is invalid, with RabbitMQ's text.
        """
        vhost = self.vhost(record.vhost)
        require_valid_policy(record, self.compile_pattern, vhost.queue_features.settings, self.archive_context.tables)
        put = writable(record)
        self.install_policy(record)
        self.journal.record(put)
        details = {
            "pattern": record.pattern,
            "apply-to": record.apply_to,
            "priority": record.priority,
            "definition": record.definition,
        }
        self.events.emit(Event(f"{_policy_kind(record)}.set", record.vhost, record.name, details))
        vhost.policy_applier.policies_changed()

    def install_policy(self, record: PolicyRecord) -> None:
        """Add a policy for queues and exchanges that are installed later; existing ones are not updated."""
        self.policies[record.key] = record
        policies = self.vhost(record.vhost).policies
        policies.put(record)
        if fault := policies.fault(record):
            name = f"{_policy_kind(record)}.without_effect"
            self.events.emit(Event(name, record.vhost, record.name, {"reason": fault}))

    def remove_policy(self, record: PolicyRecord) -> None:
        """Remove a policy; its queues and exchanges get the next one that matches."""
        del self.policies[record.key]
        self.journal.record(Removed(record.kind, record.key))
        self.events.emit(Event(f"{_policy_kind(record)}.cleared", record.vhost, record.name))
        vhost = self.vhost_by_name[record.vhost]
        vhost.policies.remove(record)
        vhost.policy_applier.policies_changed()

    def stop(self) -> None:
        """Record a clean shutdown in the store; call when no delivery is outstanding any more.

        A job that is not finished may be requeuing deliveries: then clients may have seen any message, as after a kill.
        """
        for vhost in self.vhost_by_name.values():
            vhost.queues.flush_offsets()
        doubtful_up_to = self.journal.position if len(self.clock.background) else self.doubtful_up_to
        self.journal.record(Put(CleanStopRecord(self.node, doubtful_up_to)))
        self.journal.flush()


def _policy_kind(record: PolicyRecord) -> str:
    return "operator.policy" if record.is_operator else "policy"
