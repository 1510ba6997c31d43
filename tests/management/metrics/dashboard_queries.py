"""The series that RabbitMQ's dashboard *RabbitMQ-Overview* (Grafana 10991, uid ``Kn5xm-gZk``) asks for.

Extracted from ``docker/grafana/dashboards/RabbitMQ-Overview.json`` of rabbitmq_prometheus (rabbitmq/rabbitmq-server):
version 20210322, which joins each series with ``rabbitmq_identity_info`` by ``instance``, and that of November 2021,
which selects by the labels ``rabbitmq_cluster`` and ``namespace`` instead. Their series are the same.
"""

from typing import Final

#: Shown as they are, or summed.
SHOWN: Final = (
    *("rabbitmq_queue_messages_ready", "rabbitmq_queue_messages_unacked", "rabbitmq_queues", "rabbitmq_channels"),
    *("rabbitmq_channel_consumers", "rabbitmq_connections", "rabbitmq_resident_memory_limit_bytes"),
    *("rabbitmq_process_resident_memory_bytes", "rabbitmq_disk_space_available_bytes", "rabbitmq_process_max_fds"),
    *("rabbitmq_process_open_fds", "rabbitmq_process_max_tcp_sockets", "rabbitmq_process_open_tcp_sockets"),
)

#: Whose rate over a minute is shown.
RATES: Final = (
    *("rabbitmq_channel_messages_published_total", "rabbitmq_channel_messages_confirmed_total"),
    *("rabbitmq_queue_messages_published_total", "rabbitmq_channel_messages_unconfirmed"),
    *("rabbitmq_channel_messages_unroutable_dropped_total", "rabbitmq_channel_messages_unroutable_returned_total"),
    *("rabbitmq_channel_messages_delivered_total", "rabbitmq_channel_messages_delivered_ack_total"),
    *("rabbitmq_channel_messages_redelivered_total", "rabbitmq_channel_messages_acked_total"),
    *("rabbitmq_channel_get_total", "rabbitmq_channel_get_ack_total", "rabbitmq_channel_get_empty_total"),
    *("rabbitmq_queues_declared_total", "rabbitmq_queues_created_total", "rabbitmq_queues_deleted_total"),
    *("rabbitmq_channels_opened_total", "rabbitmq_channels_closed_total"),
    *("rabbitmq_connections_opened_total", "rabbitmq_connections_closed_total"),
)

#: Labels that a query joins, groups by or shows as columns. ``namespace`` is added by Prometheus, or empty.
LABELS: Final = {
    "rabbitmq_identity_info": ("rabbitmq_cluster", "rabbitmq_node"),
    "rabbitmq_build_info": (
        *("erlang_version", "rabbitmq_version", "prometheus_client_version", "prometheus_plugin_version"),
    ),
}
