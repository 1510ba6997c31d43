"""The bodies and answers of the operations, by method and path as the routes have them.

A route that is not here has a body of any fields, and an answer of any JSON. Lists are paged (``+``) or not.
"""

from collections.abc import Mapping
from typing import Final

from gateway.management.openapi.notation import Schema, fields

#: Answers of status 200. ``+Queue`` is a list that may be paged, ``[Limits]`` one that is not.
ANSWERS: Final[Mapping[tuple[str, str], str]] = {
    ("GET", "/overview"): "Overview",
    ("GET", "/version"): "s",
    ("GET", "/extensions"): "a",
    ("GET", "/whoami"): "WhoAmI",
    ("POST", "/login"): "s",
    ("GET", "/cluster"): "Cluster",
    ("GET", "/cluster-name"): "o",
    ("GET", "/nodes"): "[Node]",
    ("GET", "/nodes/<name>"): "Node",
    ("GET", "/nodes/<name>/memory"): "Memory",
    ("GET", "/nodes/<name>/memory/relative"): "Memory",
    ("GET", "/definitions"): "Definitions",
    ("GET", "/definitions/<vhost>"): "Definitions",
    ("GET", "/all-configuration"): "Definitions",
    ("GET", "/vhosts"): "+Vhost",
    ("GET", "/vhosts/<name>"): "Vhost",
    ("GET", "/vhosts/<name>/permissions"): "+Permission",
    ("GET", "/vhosts/<name>/topic-permissions"): "+TopicPermission",
    ("GET", "/vhosts/<name>/connections"): "+Connection",
    ("GET", "/vhosts/<name>/channels"): "+Channel",
    ("GET", "/vhost-limits"): "[Limits]",
    ("GET", "/vhost-limits/<name>"): "[Limits]",
    ("GET", "/node-limits"): "o",
    ("GET", "/users"): "+User",
    ("GET", "/users/without-permissions"): "+User",
    ("GET", "/users/<name>"): "User",
    ("GET", "/users/<name>/permissions"): "+Permission",
    ("GET", "/users/<name>/topic-permissions"): "+TopicPermission",
    ("GET", "/user-limits"): "[Limits]",
    ("GET", "/user-limits/<name>"): "[Limits]",
    ("GET", "/permissions"): "+Permission",
    ("GET", "/permissions/<vhost>/<user>"): "Permission",
    ("GET", "/topic-permissions"): "+TopicPermission",
    ("GET", "/topic-permissions/<vhost>/<user>"): "+TopicPermission",
    ("GET", "/exchanges"): "+Exchange",
    ("GET", "/exchanges/<vhost>"): "+Exchange",
    ("GET", "/exchanges/<vhost>/<name>"): "Exchange",
    ("GET", "/exchanges/<vhost>/<name>/bindings/source"): "[Binding]",
    ("GET", "/exchanges/<vhost>/<name>/bindings/destination"): "[Binding]",
    ("POST", "/exchanges/<vhost>/<name>/publish"): "Routed",
    ("GET", "/queues"): "+Queue",
    ("GET", "/queues/detailed"): "+Queue",
    ("GET", "/queues/<vhost>"): "+Queue",
    ("GET", "/queues/<vhost>/<name>"): "Queue",
    ("GET", "/queues/<vhost>/<name>/bindings"): "[Binding]",
    ("POST", "/queues/<vhost>/<name>/get"): "[Message]",
    ("GET", "/bindings"): "+Binding",
    ("GET", "/bindings/<vhost>"): "+Binding",
    ("GET", "/bindings/<vhost>/e/<source>/<kind>/<destination>"): "[Binding]",
    ("GET", "/bindings/<vhost>/e/<source>/<kind>/<destination>/<key>"): "Binding",
    ("GET", "/connections"): "+Connection",
    ("GET", "/connections/username/<user>"): "[Connection]",
    ("GET", "/connections/<name>"): "o",
    ("GET", "/connections/<name>/channels"): "+Channel",
    ("GET", "/channels"): "+Channel",
    ("GET", "/channels/<name>"): "Channel",
    ("GET", "/consumers"): "+Consumer",
    ("GET", "/consumers/<vhost>"): "+Consumer",
    ("GET", "/policies"): "+Policy",
    ("GET", "/policies/<vhost>"): "+Policy",
    ("GET", "/policies/<vhost>/<name>"): "Policy",
    ("GET", "/operator-policies"): "+Policy",
    ("GET", "/operator-policies/<vhost>"): "+Policy",
    ("GET", "/operator-policies/<vhost>/<name>"): "Policy",
    ("GET", "/parameters"): "+Parameter",
    ("GET", "/parameters/<component>"): "+Parameter",
    ("GET", "/parameters/<component>/<vhost>"): "+Parameter",
    ("GET", "/parameters/<component>/<vhost>/<name>"): "Parameter",
    ("GET", "/global-parameters"): "+GlobalParameter",
    ("GET", "/global-parameters/<name>"): "GlobalParameter",
    ("GET", "/feature-flags"): "[Flag]",
    ("GET", "/deprecated-features"): "[Flag]",
    ("GET", "/deprecated-features/used"): "[Flag]",
    ("GET", "/aliveness-test/<vhost>"): "Check",
    ("GET", "/traces"): "[Trace]",
    ("GET", "/traces/<vhost>"): "[Trace]",
    ("GET", "/traces/<vhost>/<name>"): "Trace",
    ("GET", "/trace-files"): "[TraceFile]",
    ("GET", "/pipeline-runs"): "[PipelineRun]",
    ("GET", "/pipeline-runs/<name>"): "PipelineRun",
    ("GET", "/shovels"): "[Shovel]",
    ("GET", "/shovels/<vhost>"): "[Shovel]",
    ("GET", "/shovels/vhost/<vhost>/<name>"): "[Shovel]",
    ("GET", "/federation-links"): "[FederationLink]",
    ("GET", "/federation-links/<vhost>"): "[FederationLink]",
    ("GET", "/auth/attempts/<node>"): "[LoginCount]",
    ("GET", "/stream/<vhost>/<name>/tracking"): "Offsets",
    ("GET", "/mqtt/sessions"): "+Session",
    ("GET", "/mqtt/sessions/<vhost>"): "+Session",
    ("GET", "/mqtt/sessions/<vhost>/<client_id>"): "Session",
    ("GET", "/plugins"): "[Plugin]",
    ("GET", "/plugins/<vhost>"): "[PluginState]",
    ("GET", "/plugins/<vhost>/<name>"): "PluginState",
    ("GET", "/settings"): "Settings",
    ("GET", "/config/effective"): "[Setting]",
    ("GET", "/settings/<key>"): "Setting",
    ("GET", "/store"): "Store",
    ("POST", "/explain/<vhost>"): "Explanation",
}

_POLICY: Final = fields("pattern:s! definition:o! priority:i apply-to:s")
_VALUE: Final = fields("value:x!")

_TRACE: Final = fields("format:json|text! pattern:s! max_payload_bytes:i")

#: Bodies of requests.
BODIES: Final[Mapping[tuple[str, str], Schema]] = {
    ("POST", "/login"): fields("username:s! password:s!"),
    ("PUT", "/cluster-name"): fields("name:s!"),
    ("PUT", "/cluster/leader"): fields("node:s cell:i"),
    ("PUT", "/vhosts/<name>"): fields(
        "description:s tags:x default_queue_type:s tracing:b trace_table:b plugins:o cell:i"
    ),
    ("PUT", "/vhost-limits/<name>/<limit>"): fields("value:i!"),
    ("PUT", "/user-limits/<name>/<limit>"): fields("value:i!"),
    ("PUT", "/users/<name>"): fields("tags:x! password:s password_hash:s hashing_algorithm:s"),
    ("POST", "/users/bulk-delete"): fields("users:a!"),
    ("PUT", "/permissions/<vhost>/<user>"): fields("configure:s! write:s! read:s!"),
    ("PUT", "/topic-permissions/<vhost>/<user>"): fields("exchange:s! write:s! read:s!"),
    ("PUT", "/exchanges/<vhost>/<name>"): fields("type:s! durable:b auto_delete:b internal:b arguments:o"),
    ("POST", "/exchanges/<vhost>/<name>/publish"): fields(
        "properties:o! routing_key:s! payload:s! payload_encoding:string|base64!"
    ),
    ("PUT", "/queues/<vhost>/<name>"): fields("durable:b auto_delete:b arguments:o node:s"),
    ("POST", "/queues/<vhost>/<name>/get"): fields(
        "count:i! encoding:auto|base64! truncate:i "
        "ackmode:ack_requeue_true|reject_requeue_true|ack_requeue_false|reject_requeue_false!"
    ),
    ("POST", "/queues/<vhost>/<name>/actions"): fields("action:sync|cancel_sync!"),
    ("POST", "/queues/quorum/<vhost>/<name>/replicas/add"): fields("node:s!"),
    ("DELETE", "/queues/quorum/<vhost>/<name>/replicas/delete"): fields("node:s!"),
    ("POST", "/queues/quorum/replicas/on/<node>/grow"): fields("vhost_pattern:s! queue_pattern:s! strategy:all|even!"),
    ("POST", "/bindings/<vhost>/e/<source>/<kind>/<destination>"): fields("routing_key:s arguments:o"),
    ("PUT", "/policies/<vhost>/<name>"): _POLICY,
    ("PUT", "/operator-policies/<vhost>/<name>"): _POLICY,
    ("PUT", "/parameters/<component>/<vhost>/<name>"): _VALUE,
    ("PUT", "/global-parameters/<name>"): _VALUE,
    ("PUT", "/settings/<key>"): _VALUE,
    ("PUT", "/traces/<vhost>/<name>"): _TRACE,
    ("PUT", "/traces/node/<node>/<vhost>/<name>"): _TRACE,
    ("PUT", "/message-traces/<vhost>"): fields("sample:n!"),
    ("PUT", "/stream/<vhost>/<name>/tracking/<consumer>"): fields("offset:i!"),
    ("PUT", "/stream/super-streams/<vhost>/<name>"): fields("partitions:i binding-keys:x arguments:o exchange-type:s"),
    ("POST", "/explain/<vhost>"): fields(
        "exchange:s routing_key:s mqtt_topic:s client_id:s stomp_destination:s headers:o properties:o user:s"
    ),
    ("PUT", "/pipeline/<vhost>/progress/<consumer>"): fields("offsets:o!"),
    **dict.fromkeys(
        (
            ("POST", "/definitions"),
            ("POST", "/definitions/<vhost>"),
            ("POST", "/all-configuration"),
            ("POST", "/definitions-check"),
        ),
        fields(
            "users:a vhosts:a permissions:a topic_permissions:a parameters:a policies:a queues:a exchanges:a bindings:a"
        ),
    ),
}

#: Content types of bodies that are not JSON.
BODY_TYPES: Final[Mapping[tuple[str, str], str]] = {
    ("POST", "/login"): "application/x-www-form-urlencoded",
    ("POST", "/pipeline/<vhost>/stage"): "application/octet-stream",
    ("PUT", "/plugin-files/<name>"): "application/octet-stream",
}

#: Content types of answers that are not JSON.
ANSWER_TYPES: Final[Mapping[tuple[str, str], str]] = {
    ("GET", "/log/stream"): "text/plain",
    ("GET", "/trace-files/<name>"): "text/plain",
    ("GET", "/trace-files/node/<node>/<name>"): "text/plain",
    ("GET", "/pipeline-runs/<name>/report"): "text/html",
    ("GET", "/events/stream"): "application/x-ndjson",
    ("GET", "/pipeline/<vhost>/read"): "application/vnd.apache.arrow.stream",
    ("GET", "/archive-files/<vhost>/part"): "application/vnd.apache.parquet",
}

#: Fields of queries, besides those of lists and of statistics.
QUERIES: Final[Mapping[tuple[str, str], str]] = {
    ("GET", "/queues"): "disable_stats:b enable_queue_totals:b",
    ("GET", "/queues/<vhost>"): "disable_stats:b enable_queue_totals:b",
    ("DELETE", "/queues/<vhost>/<name>"): "if-unused:b if-empty:b",
    ("DELETE", "/exchanges/<vhost>/<name>"): "if-unused:b",
    ("GET", "/message-traces/<vhost>"): "message_id:s exchange:s routing_key:s queue:s user:s limit:i",
    ("GET", "/queues/<vhost>/<name>/delayed"): "truncate:i",
    ("GET", "/exchanges/<vhost>/<name>/delayed"): "truncate:i",
    ("GET", "/exchanges/<vhost>/<name>/kept"): "truncate:i",
    ("DELETE", "/exchanges/<vhost>/<name>/kept"): "key:s",
    ("GET", "/pipeline/<vhost>/streams"): "names:s",
    ("GET", "/pipeline/<vhost>/offset"): "queue:s timestamp:i offset:i bytes:i",
    ("GET", "/pipeline/<vhost>/read"): "queue:s from:i to:i incarnation:s",
    ("POST", "/pipeline/<vhost>/stage"): "attempt:s part:i",
    ("GET", "/archive-files/<vhost>/list"): "source:s name:s since:i until:i after:s table:s",
    ("GET", "/archive-files/<vhost>/columns"): "source:s name:s table:s",
    ("GET", "/archive-files/<vhost>/part"): "source:s name:s file:s proof:s position:i size:i",
    ("GET", "/queue-depths/<vhost>"): "at:i after:s",
    ("GET", "/trace-files/<name>"): "tail:i",
    ("GET", "/trace-files/node/<node>/<name>"): "tail:i",
    **dict.fromkeys((("POST", "/definitions-plan"), ("POST", "/definitions-plan/<vhost>")), "prune:b"),
    **dict.fromkeys((("POST", "/definitions-apply"), ("POST", "/definitions-apply/<vhost>")), "prune:b plan:s"),
    ("GET", "/log"): "lines:i",
    ("GET", "/log/stream"): "duration:s",
    ("GET", "/events/stream"): "duration:s",
}

PAGING: Final = "page:i page_size:i name:s use_regex:b sort:s sort_reverse:b columns:s"

STATISTICS: Final = " ".join(
    f"{family}_{part}:i" for family in ("lengths", "msg_rates", "data_rates", "node_stats") for part in ("age", "incr")
)
