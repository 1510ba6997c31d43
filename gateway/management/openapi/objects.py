"""The objects of the API's answers. A query with ``columns`` leaves fields out, so few are required."""

from typing import Final

from gateway.management.openapi.notation import Schema, fields

_TOTALS: Final = "messages:i~ messages_ready:i~ messages_unacknowledged:i~"

OBJECTS: Final[dict[str, Schema]] = {
    "Rate": fields("rate:n! samples:a avg:n avg_rate:n"),
    "Error": fields("error:s! reason:x!"),
    "Check": fields("status:ok|failed! reason:s"),
    "Overview": fields(
        "cluster_name:s node:s product_name:s product_version:s rabbitmq_version:s management_version:s "
        "erlang_version:s rates_mode:s message_stats:o queue_totals:o object_totals:o churn_rates:o "
        "exchange_types:a listeners:[Listener] contexts:a set_aside:i statistics_db_event_queue:i"
    ),
    "Listener": fields("node:s! protocol:s! ip_address:s! port:i! socket_opts:o"),
    "Node": fields(
        "name:s type:s running:b uptime:i os_pid:s db_dir:s config_files:a log_files:a enabled_plugins:a "
        "being_drained:b mem_used:i~ mem_limit:i mem_alarm:b mem_total:i disk_free:i~ disk_free_limit:i "
        "disk_free_alarm:b fd_used:i~ fd_total:i sockets_used:i~ sockets_total:i proc_used:i~ proc_total:i "
        "processors:i run_queue:i partitions:a rates_mode:s turns:o contained_faults:o exchange_types:a "
        "auth_mechanisms:a applications:a doubt:s"
    ),
    "Memory": fields("memory:x!"),
    "Cluster": fields(
        "name:s! node:s! leader:s?! epoch:i! members:a! engine:o! doubt:s?! lease_seconds:n! log:o! rebuild:o! cells:a"
    ),
    "User": fields("name:s tags:a password_hash:s hashing_algorithm:s limits:o"),
    "WhoAmI": fields("name:s! tags:a!"),
    "Vhost": fields(
        "name:s description:s tags:a default_queue_type:s protected_from_deletion:b tracing:b trace_table:b cell:i "
        f"metadata:o cluster_state:o recv_oct:i~ send_oct:i~ message_stats:o {_TOTALS}"
    ),
    "Limits": fields("vhost:s user:s value:o!"),
    "Permission": fields("user:s vhost:s configure:s write:s read:s"),
    "TopicPermission": fields("user:s vhost:s exchange:s write:s read:s"),
    "Exchange": fields(
        "name:s vhost:s type:s durable:b auto_delete:b internal:b arguments:o policy:s message_stats:o incoming:a "
        "outgoing:a"
    ),
    "Queue": fields(
        "name:s vhost:s type:s state:s node:s durable:b auto_delete:b exclusive:b arguments:o policy:s? "
        "operator_policy:s? effective_policy_definition:o effective_settings:o consumers:i consumer_capacity:n "
        "consumer_utilisation:n memory:i message_bytes:i message_bytes_ready:i message_bytes_unacknowledged:i "
        "message_bytes_ram:i message_bytes_persistent:i messages_ram:i messages_persistent:i messages_delayed:i "
        "messages_paged_out:i head_message_timestamp:i? idle_since:s disk_reads:i disk_writes:i message_stats:o "
        "garbage_collection:o consumer_details:[Consumer] incoming:a deliveries:a leader:s members:a online:a "
        f"first_offset:i next_offset:i committed_offset:i segments:i readers:o {_TOTALS}"
    ),
    "Binding": fields(
        "source:s vhost:s destination:s destination_type:queue|exchange routing_key:s arguments:o properties_key:s"
    ),
    "Connection": fields(
        "name:s user:s vhost:s protocol:s state:s type:s node:s host:s port:i peer_host:s peer_port:i ssl:b "
        "ssl_protocol:s? ssl_cipher:s? peer_cert_subject:s? channels:i channel_max:i frame_max:i timeout:i "
        "connected_at:i client_properties:o user_provided_name:s? recv_oct:i~ recv_cnt:i send_oct:i~ send_cnt:i "
        "send_pend:i"
    ),
    "Channel": fields(
        "name:s number:i user:s vhost:s node:s state:s confirm:b transactional:b consumer_count:i prefetch_count:i "
        "global_prefetch_count:i messages_unacknowledged:i messages_unconfirmed:i messages_uncommitted:i "
        "acks_uncommitted:i connection_details:o message_stats:o publishes:a deliveries:a consumer_details:[Consumer]"
    ),
    "Consumer": fields(
        "consumer_tag:s queue:o channel_details:x ack_required:b active:b activity_status:s exclusive:b "
        "prefetch_count:i arguments:o"
    ),
    "Policy": fields("name:s vhost:s pattern:s apply-to:s definition:o priority:i"),
    "Parameter": fields("component:s vhost:s name:s value:x"),
    "GlobalParameter": fields("name:s value:x"),
    "Message": fields(
        "payload:s! payload_encoding:string|base64! payload_bytes:i! properties:x! exchange:s! routing_key:s! "
        "redelivered:b! message_count:i!"
    ),
    "Routed": fields("routed:b!"),
    "Definitions": fields(
        "rabbit_version:s rabbitmq_version:s users:a vhosts:a permissions:a topic_permissions:a parameters:a "
        "global_parameters:a policies:a queues:a exchanges:a bindings:a"
    ),
    "Flag": fields("name:s! desc:s! doc_url:s state:s! provided_by:s!"),
    "Shovel": fields("name:s! vhost:s! node:s! type:s! state:s! timestamp:s! reason:s"),
    "FederationLink": fields("id:s! vhost:s! node:s! type:s! status:s! timestamp:s! upstream:s! uri:s error:s"),
    "LoginCount": fields("protocol:s! auth_attempts:i! auth_attempts_failed:i! auth_attempts_succeeded:i!"),
    "Trace": fields("name:s! vhost:s! format:json|text! pattern:s! max_payload_bytes:i lines:i! left_out:i! error:s!"),
    "TraceFile": fields("name:s! size:i!"),
    "PipelineRun": fields(
        "name:s! report_bytes:i?! error:s! job:s started:s finished:s options:o figures:o warnings:a"
    ),
    "Session": fields("client_id:s vhost:s is_connected:b messages:i"),
    "Offsets": fields("offsets:o! lags:o!"),
    "Plugin": fields("name:s! description:s! source:s! hooks:a! settings:a!"),
    "PluginState": fields("name:s! vhost:s! state:s! faults:i!"),
    "Setting": fields("key:s! value:x! origin:s! default:x"),
    "Settings": fields("files:a! settings:[Setting]!"),
    "Store": fields("file_bytes:i used_bytes:i free_bytes:i set_aside:i! records_set_aside:a"),
    "Explanation": fields(
        "outcome:routed|unroutable|delayed|duplicate! allowed:b! checks:a! exchanges:a! queues:a! queue_count:i! "
        "user:s! vhost:s!"
    ),
}
