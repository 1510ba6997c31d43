"""The actions that the audit record keeps, by method and path of their route.

An action has a noun and what happened to it: ``user.created``. Routes that are not listed here are recorded with the
method and the first part of their path as action, and with the request's body.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.management.auditing import snapshots
from gateway.management.auditing.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """The entry of a route in the audit record.

    ``action`` has a verb, or it is a noun whose verb depends on the states: ``created``, ``changed``, or ``deleted`` by
    DELETE. ``snapshot`` returns the state, ``has_body`` keeps the body of the request too. A change that leaves the
    state as it was is not recorded. ``vhost_in`` is the name in the path that is the virtual host.
    """

    action: str
    snapshot: Snapshot | None = None
    has_body: bool = False
    vhost_in: str = "vhost"


_USER: Final = AuditedAction("user", snapshots.user)
_VHOST: Final = AuditedAction("vhost", snapshots.vhost, vhost_in="name")
_VHOST_LIMITS: Final = AuditedAction("vhost_limits.changed", snapshots.vhost_limits, vhost_in="name")
_USER_LIMITS: Final = AuditedAction("user_limits.changed", snapshots.user_limits)
_TOPIC_PERMISSION: Final = AuditedAction("topic_permission.changed", snapshots.topic_permissions)
_PLUGIN: Final = AuditedAction("plugin", snapshots.plugin)
_DEFINITIONS: Final = AuditedAction("definitions.imported")
_TRACE_STARTED: Final = AuditedAction("trace.started", has_body=True)
_TRACE_STOPPED: Final = AuditedAction("trace.stopped")
_TRACE_FILE_DELETED: Final = AuditedAction("trace_file.deleted")
_DELAYED: Final = AuditedAction("delayed_message.deleted")
_DEDUPLICATION: Final = AuditedAction("deduplication.cleared")
_RETAINED: Final = AuditedAction("mqtt_retained.deleted")

#: Each route with what it does, as ``METHOD path``.
AUDITED: Final[Mapping[str, AuditedAction]] = {
    "PUT /cluster-name": AuditedAction("cluster_name.changed", snapshots.cluster_name),
    "POST /definitions": _DEFINITIONS,
    "POST /all-configuration": _DEFINITIONS,
    "POST /definitions/<vhost>": _DEFINITIONS,
    "POST /definitions-apply": AuditedAction("definitions.applied"),
    "POST /definitions-apply/<vhost>": AuditedAction("definitions.applied"),
    "PUT /vhosts/<name>": _VHOST,
    "DELETE /vhosts/<name>": _VHOST,
    "POST /vhosts/<name>/deletion/protection": AuditedAction("vhost.changed", snapshots.vhost, vhost_in="name"),
    "DELETE /vhosts/<name>/deletion/protection": AuditedAction("vhost.changed", snapshots.vhost, vhost_in="name"),
    "PUT /vhost-limits/<name>/<limit>": _VHOST_LIMITS,
    "DELETE /vhost-limits/<name>/<limit>": _VHOST_LIMITS,
    "POST /users/bulk-delete": AuditedAction("user.deleted", has_body=True),
    "PUT /users/<name>": _USER,
    "DELETE /users/<name>": _USER,
    "PUT /user-limits/<name>/<limit>": _USER_LIMITS,
    "DELETE /user-limits/<name>/<limit>": _USER_LIMITS,
    "PUT /permissions/<vhost>/<user>": AuditedAction("permission", snapshots.permission),
    "DELETE /permissions/<vhost>/<user>": AuditedAction("permission", snapshots.permission),
    "PUT /topic-permissions/<vhost>/<user>": _TOPIC_PERMISSION,
    "DELETE /topic-permissions/<vhost>/<user>": _TOPIC_PERMISSION,
    "DELETE /topic-permissions/<vhost>/<user>/<exchange>": _TOPIC_PERMISSION,
    "PUT /exchanges/<vhost>/<name>": AuditedAction("exchange", snapshots.exchange),
    "DELETE /exchanges/<vhost>/<name>": AuditedAction("exchange", snapshots.exchange),
    "PUT /queues/<vhost>/<name>": AuditedAction("queue", snapshots.queue),
    "DELETE /queues/<vhost>/<name>": AuditedAction("queue", snapshots.queue),
    "DELETE /queues/<vhost>/<name>/contents": AuditedAction("queue.purged", snapshots.messages),
    "DELETE /queues/<vhost>/<name>/delayed": _DELAYED,
    "DELETE /queues/<vhost>/<name>/delayed/<position>": _DELAYED,
    "DELETE /exchanges/<vhost>/<name>/delayed": _DELAYED,
    "DELETE /exchanges/<vhost>/<name>/delayed/<position>": _DELAYED,
    "DELETE /exchanges/<vhost>/<name>/kept": AuditedAction("kept_message.deleted"),
    "DELETE /pipeline/<vhost>/batches/<name>": AuditedAction("pipeline_batch.ended"),
    "DELETE /queues/<vhost>/<name>/deduplication": _DEDUPLICATION,
    "DELETE /exchanges/<vhost>/<name>/deduplication": _DEDUPLICATION,
    "PUT /stream/<vhost>/<name>/tracking/<consumer>": AuditedAction("stream_offset.changed", has_body=True),
    "DELETE /stream/<vhost>/<name>/tracking/<consumer>": AuditedAction("stream_offset.deleted"),
    "PUT /stream/super-streams/<vhost>/<name>": AuditedAction("super_stream.created", has_body=True),
    "DELETE /stream/super-streams/<vhost>/<name>": AuditedAction("super_stream.deleted"),
    "POST /bindings/<vhost>/e/<source>/<kind>/<destination>": AuditedAction("binding.created", has_body=True),
    "DELETE /bindings/<vhost>/e/<source>/<kind>/<destination>/<key>": AuditedAction("binding.deleted"),
    "DELETE /connections/username/<user>": AuditedAction("connection.closed"),
    "DELETE /connections/<name>": AuditedAction("connection.closed"),
    "PUT /policies/<vhost>/<name>": AuditedAction("policy", snapshots.policy),
    "DELETE /policies/<vhost>/<name>": AuditedAction("policy", snapshots.policy),
    "PUT /operator-policies/<vhost>/<name>": AuditedAction("operator_policy", snapshots.operator_policy),
    "DELETE /operator-policies/<vhost>/<name>": AuditedAction("operator_policy", snapshots.operator_policy),
    "PUT /parameters/<component>/<vhost>/<name>": AuditedAction("parameter", snapshots.parameter),
    "DELETE /parameters/<component>/<vhost>/<name>": AuditedAction("parameter", snapshots.parameter),
    "PUT /global-parameters/<name>": AuditedAction("global_parameter", snapshots.global_parameter),
    "DELETE /global-parameters/<name>": AuditedAction("global_parameter", snapshots.global_parameter),
    "PUT /feature-flags/<name>/enable": AuditedAction("feature_flag.enabled"),
    "DELETE /mqtt/sessions/<vhost>/<client_id>": AuditedAction("mqtt_session.deleted"),
    "DELETE /mqtt/retained/<vhost>/<topic>": _RETAINED,
    "DELETE /reset": AuditedAction("statistics.reset"),
    "DELETE /reset/<node>": AuditedAction("statistics.reset"),
    "DELETE /auth/attempts/<node>": AuditedAction("auth_attempts.reset"),
    "DELETE /auth/attempts/<node>/source": AuditedAction("auth_attempts.reset"),
    "POST /store/compact": AuditedAction("store.compacted"),
    "DELETE /shovels/vhost/<vhost>/<name>": AuditedAction("shovel", snapshots.shovel),
    "DELETE /shovels/vhost/<vhost>/<name>/restart": AuditedAction("shovel.restarted"),
    "DELETE /federation-links/vhost/<vhost>/<id>/<node>/restart": AuditedAction("federation_link.restarted"),
    "PUT /message-traces/<vhost>": AuditedAction("message_traces.changed", has_body=True),
    "DELETE /message-traces/<vhost>": AuditedAction("message_traces.deleted"),
    "PUT /traces/<vhost>/<name>": _TRACE_STARTED,
    "PUT /traces/node/<node>/<vhost>/<name>": _TRACE_STARTED,
    "DELETE /traces/<vhost>/<name>": _TRACE_STOPPED,
    "DELETE /traces/node/<node>/<vhost>/<name>": _TRACE_STOPPED,
    "DELETE /trace-files/<name>": _TRACE_FILE_DELETED,
    "DELETE /trace-files/node/<node>/<name>": _TRACE_FILE_DELETED,
    "PUT /plugins/<vhost>/<name>": _PLUGIN,
    "DELETE /plugins/<vhost>/<name>": _PLUGIN,
    "POST /plugins/<vhost>/<name>/reload": AuditedAction("plugin.reloaded", snapshots.plugin),
    "POST /plugins/<vhost>/<name>/rollback": AuditedAction("plugin.rolled_back", snapshots.plugin),
    "PUT /plugins/<vhost>/<name>/resources/<path:path>": AuditedAction("plugin_resource.put", has_body=True),
    "POST /plugins/<vhost>/<name>/resources/<path:path>": AuditedAction("plugin_resource.post", has_body=True),
    "DELETE /plugins/<vhost>/<name>/resources/<path:path>": AuditedAction("plugin_resource.delete", has_body=True),
    "PUT /plugin-files/<name>": AuditedAction("plugin_file.uploaded"),
    "PUT /settings/<key>": AuditedAction("settings.changed", snapshots.setting),
    "DELETE /settings/<key>": AuditedAction("settings.changed", snapshots.setting),
    "POST /reload": AuditedAction("settings.reloaded"),
    "PUT /cluster/nodes/<name>/maintenance": AuditedAction("maintenance.started"),
    "DELETE /cluster/nodes/<name>/maintenance": AuditedAction("maintenance.ended"),
    "DELETE /cluster/nodes/<name>": AuditedAction("cluster_node.deleted"),
    "PUT /cluster/leader": AuditedAction("leadership.transferred", has_body=True),
    "PUT /maintenance": AuditedAction("maintenance.started"),
    "DELETE /maintenance": AuditedAction("maintenance.ended"),
    "PUT /maintenance/listeners": AuditedAction("listeners.suspended"),
    "DELETE /maintenance/listeners": AuditedAction("listeners.resumed"),
    "PUT /recording": AuditedAction("recording.started"),
    "DELETE /recording": AuditedAction("recording.stopped"),
    "POST /stop": AuditedAction("node.stopped"),
    "POST /log/rotate": AuditedAction("log.rotated"),
    "DELETE /workbench/jobs/<id>": AuditedAction("workbench.cancel"),
    "DELETE /workbench/undo/<id>": AuditedAction("workbench.forget"),
    "DELETE /auth/cache": AuditedAction("auth_cache.cleared"),
    "DELETE /auth/cache/<vhost>": AuditedAction("auth_cache.cleared"),
}

_WORKBENCH: Final = ("move", "copy", "edit", "delete", "requeue")

#: Routes that change nothing which outlives the request, or move messages as their clients do.
NOT_AUDITED: Final = frozenset(
    {
        "POST /workbench/<vhost>/<name>/search",
        *(f"POST /workbench/<vhost>/<name>/{action}" for action in _WORKBENCH),  # recorded when their jobs end
        "POST /workbench/undo/<id>",
        "POST /definitions-check",
        "POST /definitions-plan",
        "POST /definitions-plan/<vhost>",
        "POST /login",
        "DELETE /login",
        "POST /explain/<vhost>",
        "POST /operator-policies/<vhost>/<name>/preview",
        "POST /policies/<vhost>/<name>/preview",
        "POST /exchanges/<vhost>/<name>/publish",
        "POST /queues/<vhost>/<name>/get",
        "PUT /pipeline/<vhost>/progress/<consumer>",
        "DELETE /pipeline/<vhost>/progress/<consumer>",
        "POST /pipeline/<vhost>/stage",
        "POST /pipeline/<vhost>/commit",
        "POST /pipeline/<vhost>/discard",
        "POST /rebalance/queues",
        "POST /queues/quorum/<vhost>/<name>/replicas/add",
        "DELETE /queues/quorum/<vhost>/<name>/replicas/delete",
        "POST /queues/quorum/replicas/on/<node>/grow",
        "DELETE /queues/quorum/replicas/on/<node>/shrink",
        "POST /queues/<vhost>/<name>/actions",
        "POST /vhosts/<name>/start/<node>",
    }
)
