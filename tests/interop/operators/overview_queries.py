"""The series that RabbitMQ's dashboard *RabbitMQ-Overview* (Grafana 10991) asks for, in our words.

Each panel sums a series, or its rate over a minute, of one cluster. Dashboards up to 2021 find the cluster in labels of
each series, which a relabelling adds; later ones join each series with ``rabbitmq_identity_info`` by instance and job.
"""

from collections.abc import Iterator
from typing import Final

GAUGES: Final = (
    *("rabbitmq_queue_messages_ready", "rabbitmq_queue_messages_unacked"),
    *("rabbitmq_global_publishers", "rabbitmq_global_consumers"),
    *("rabbitmq_queues", "rabbitmq_channels", "rabbitmq_connections", "rabbitmq_consumers"),
    *("rabbitmq_channel_consumers", "rabbitmq_build_info", "rabbitmq_erlang_uptime_seconds"),
)

#: Shown as what is left until a limit.
LIMITED: Final = (
    ("rabbitmq_resident_memory_limit_bytes", "rabbitmq_process_resident_memory_bytes"),
    ("rabbitmq_disk_space_available_bytes", "rabbitmq_disk_space_available_limit_bytes"),
    ("rabbitmq_process_max_fds", "rabbitmq_process_open_fds"),
    ("rabbitmq_process_max_tcp_sockets", "rabbitmq_process_open_tcp_sockets"),
)

RATES: Final = (
    *(
        f"rabbitmq_global_messages_{name}_total"
        for name in (
            *("received", "received_confirm", "confirmed", "routed", "unroutable_dropped", "unroutable_returned"),
            *("delivered", "delivered_consume_auto_ack", "delivered_consume_manual_ack", "delivered_get_auto_ack"),
            *("delivered_get_manual_ack", "get_empty", "redelivered", "acknowledged"),
        )
    ),
    *(
        f"rabbitmq_channel_{name}_total"
        for name in (
            *(
                "messages_published",
                "messages_confirmed",
                "messages_unroutable_returned",
                "messages_unroutable_dropped",
            ),
            *("messages_delivered", "messages_delivered_ack", "messages_redelivered", "messages_acked"),
            *("get", "get_ack", "get_empty"),
        )
    ),
    *(f"rabbitmq_queues_{change}_total" for change in ("declared", "created", "deleted")),
    *(f"rabbitmq_{kind}_{change}_total" for kind in ("channels", "connections") for change in ("opened", "closed")),
    "rabbitmq_message_size_bytes_bucket",
    *("rabbitmq_queue_messages_published_total", "rabbitmq_channel_messages_unconfirmed"),
)


def queries(cluster: str) -> Iterator[str]:
    """Yield the queries for a cluster, in both forms."""
    identity = f'rabbitmq_identity_info{{rabbitmq_cluster="{cluster}", namespace=""}}'
    by_instance = f"* on(instance) group_left(rabbitmq_cluster, rabbitmq_node) {identity}"  # until 2021
    yield f"rabbitmq_build_info {by_instance}"
    yield f"sum(rate(rabbitmq_channel_messages_published_total[60s]) {by_instance}) by(rabbitmq_node)"
    joined = f"* on(instance, job) group_left(rabbitmq_cluster, rabbitmq_node) {identity}"
    for name in GAUGES:
        yield f"sum({name} {joined}) by(rabbitmq_node)"
        yield f"sum({name})"
    for limit, used in LIMITED:
        yield f"({limit} {joined}) - ({used} {joined})"
    for name in RATES:
        yield f"sum(rate({name}[60s]) {joined}) by(rabbitmq_node)"
        yield f"sum(rate({name}[60s]))"
    yield f"sum(increase(rabbitmq_message_size_bytes_bucket[60s]) {joined}) by(le)"
