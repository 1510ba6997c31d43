"""The metrics that RabbitMQ's users query exist, with their labels: dashboards, alerts and checks rely on them.

The dashboard *RabbitMQ-Overview* (Grafana 10991) has queries with these names; those of its versions up to 2021 sum the
metrics of channels, later ones the global counters.
"""

from typing import Final

import pytest

from tests.management.metrics.dashboard_queries import LABELS, RATES, SHOWN
from tests.management.metrics.scraper import Samples, Scraper

GLOBAL: Final = (*("received", "received_confirm", "confirmed", "routed", "unroutable_dropped", "unroutable_returned"),)
BY_TYPE: Final = (
    *("delivered", "delivered_consume_auto_ack", "delivered_consume_manual_ack", "delivered_get_auto_ack"),
    *("delivered_get_manual_ack", "get_empty", "redelivered", "acknowledged"),
)
PROTOCOLS: Final = {"amqp091", "mqtt310", "mqtt311", "mqtt50", "STOMP 1.0", "STOMP 1.1", "STOMP 1.2"}
QUEUE_TYPES: Final = {"rabbit_classic_queue", "rabbit_quorum_queue", "rabbit_stream_queue"}

#: Names without labels that a query reads or joins with ``rabbitmq_identity_info``.
PLAIN: Final = (
    "rabbitmq_erlang_uptime_seconds",
    *("rabbitmq_queues", "rabbitmq_channels", "rabbitmq_connections", "rabbitmq_consumers"),
    *(f"rabbitmq_queues_{change}_total" for change in ("declared", "created", "deleted")),
    *(f"rabbitmq_{kind}_{change}_total" for kind in ("channels", "connections") for change in ("opened", "closed")),
    *("rabbitmq_queue_messages_ready", "rabbitmq_queue_messages_unacked", "rabbitmq_queue_messages"),
    *("rabbitmq_process_resident_memory_bytes", "rabbitmq_resident_memory_limit_bytes"),
    *("rabbitmq_process_open_fds", "rabbitmq_process_max_fds"),
    *("rabbitmq_process_open_tcp_sockets", "rabbitmq_process_max_tcp_sockets"),
    *("rabbitmq_disk_space_available_bytes", "rabbitmq_disk_space_available_limit_bytes"),
    *("rabbitmq_alarms_memory_used_watermark", "rabbitmq_alarms_free_disk_space_watermark"),
    *("rabbitmq_auth_attempts_total", "rabbitmq_auth_attempts_succeeded_total", "rabbitmq_auth_attempts_failed_total"),
    *(
        f"rabbitmq_channel_messages_{name}"
        for name in (
            *("published_total", "confirmed_total", "unroutable_returned_total", "unroutable_dropped_total"),
            *("delivered_total", "delivered_ack_total", "redelivered_total", "acked_total"),
            *("unacked", "unconfirmed"),
        )
    ),
    *("rabbitmq_channel_consumers", "rabbitmq_channel_get_total", "rabbitmq_channel_get_ack_total"),
    "rabbitmq_channel_get_empty_total",
    *("rabbitmq_connection_incoming_bytes_total", "rabbitmq_connection_outgoing_bytes_total"),
)


@pytest.fixture(scope="module")
def scraped() -> Samples:
    return Scraper().scrape()


@pytest.mark.parametrize("name", PLAIN)
def test_a_metric_of_the_node_has_one_sample_without_labels(scraped: Samples, name: str) -> None:
    assert scraped.labels_of(name) == [{}]


@pytest.mark.parametrize("name", GLOBAL)
def test_a_global_counter_of_publishes_has_a_sample_for_each_protocol(scraped: Samples, name: str) -> None:
    labels = scraped.labels_of(f"rabbitmq_global_messages_{name}_total")
    assert {each["protocol"] for each in labels} == {*PROTOCOLS, "http"}
    assert all(each.keys() == {"protocol"} for each in labels)


@pytest.mark.parametrize("name", BY_TYPE)
def test_a_global_counter_of_deliveries_has_a_sample_for_each_protocol_and_queue_type(
    scraped: Samples, name: str
) -> None:
    labels = scraped.labels_of(f"rabbitmq_global_messages_{name}_total")
    found = {(each["protocol"], each["queue_type"]) for each in labels}
    assert found >= {(protocol, kind) for protocol in PROTOCOLS for kind in QUEUE_TYPES}
    assert {name for name, kind in found if kind == "rabbit_mqtt_qos0_queue"} == {"mqtt310", "mqtt311", "mqtt50"}


@pytest.mark.parametrize("name", ["rabbitmq_global_publishers", "rabbitmq_global_consumers"])
def test_publishers_and_consumers_are_counted_by_protocol(scraped: Samples, name: str) -> None:
    assert {each["protocol"] for each in scraped.labels_of(name)} >= PROTOCOLS


def test_the_histogram_of_sizes_has_rabbitmqs_bounds(scraped: Samples) -> None:
    bounds = [
        each["le"] for each in scraped.labels_of("rabbitmq_message_size_bytes_bucket") if each["protocol"] == "mqtt50"
    ]
    assert [float(bound) for bound in bounds] == [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 5e7, 1e8, float("inf")]
    assert {"rabbitmq_message_size_bytes_sum", "rabbitmq_message_size_bytes_count"} <= scraped.names


def test_the_node_identifies_itself_with_one_sample_for_joins(scraped: Samples) -> None:
    (identity,) = scraped.labels_of("rabbitmq_identity_info")
    assert identity.keys() >= {"rabbitmq_node", "rabbitmq_cluster", "rabbitmq_endpoint"}
    assert identity["rabbitmq_endpoint"] == "aggregated"
    (build,) = scraped.labels_of("rabbitmq_build_info")
    assert build.keys() >= {"rabbitmq_version", "erlang_version", "product_version"}


@pytest.mark.parametrize("reason", ["confirmed", "delivery_limit", "expired", "maxlen", "rejected"])
def test_dead_letters_are_counted_by_queue_type_and_strategy(scraped: Samples, reason: str) -> None:
    labels = scraped.labels_of(f"rabbitmq_global_messages_dead_lettered_{reason}_total")
    found = {(each["queue_type"], each["dead_letter_strategy"]) for each in labels}
    assert found == {
        *(("rabbit_classic_queue", strategy) for strategy in ("disabled", "at_most_once")),
        *(("rabbit_quorum_queue", strategy) for strategy in ("disabled", "at_most_once", "at_least_once")),
    }


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("queue_coarse_metrics", {"queue_messages_ready", "queue_messages_unacked", "queue_messages"}),
        ("queue_consumer_count", {"queue_consumers"}),
        ("queue_metrics", {"queue_consumers", "queue_process_memory_bytes", "queue_messages_persistent"}),
        ("queue_delivery_metrics", {"queue_messages_delivered_ack_total", "queue_messages_acked_total"}),
        ("exchange_metrics", {"exchange_messages_published_total"}),
        ("connection_churn_metrics", {"connections_opened_total", "queues_created_total"}),
        ("node_coarse_metrics", {"process_open_fds", "disk_space_available_bytes"}),
        ("node_metrics", {"process_max_fds", "erlang_uptime_seconds"}),
        ("auth_attempt_metrics", {"auth_attempts_total"}),
    ],
)
def test_a_family_of_a_query_has_its_metrics(family: str, names: set[str]) -> None:
    scraper = Scraper()
    scraper.gateway.vhost.declare_queue("q")
    found = scraper.scrape(f"/metrics/detailed?family={family}").names
    assert found >= {f"rabbitmq_detailed_{name}" for name in names}


@pytest.mark.parametrize(
    "name",
    [
        *("rabbitmq_up", "rabbitmq_version_info", "rabbitmq_aliveness_test", "rabbitmq_running", "rabbitmq_exchanges"),
        *("rabbitmq_queue_messages", "rabbitmq_queue_consumers", "rabbitmq_queue_messages_unacknowledged_global"),
        *("rabbitmq_node_mem_used", "rabbitmq_node_disk_free", "rabbitmq_fd_used", "rabbitmq_sockets_used"),
        "rabbitmq_exchange_messages_published_in_total",
    ],
)
def test_the_names_of_rabbitmq_exporter_have_a_path_of_their_own(name: str) -> None:
    scraper = Scraper()
    scraper.gateway.vhost.declare_queue("q")
    assert name in scraper.scrape("/metrics/exporter").names


@pytest.mark.parametrize(
    "name",
    [
        *("gateway_plugin_seconds", "gateway_trace_messages", "gateway_mqtt_session_messages"),
        *("gateway_dropped_messages_total", "gateway_delayed_messages", "gateway_turn_seconds"),
        *("gateway_archive_waiting_bytes", "gateway_pipeline_staged_bytes", "gateway_faults_total"),
    ],
)
def test_the_gateways_own_metrics_exist(scraped: Samples, name: str) -> None:
    assert f"# TYPE {name} " in scraped.text


@pytest.mark.parametrize("name", [*SHOWN, *RATES])
def test_each_query_of_the_overview_dashboard_finds_one_series(scraped: Samples, name: str) -> None:
    assert len(scraped.labels_of(name)) == 1


@pytest.mark.parametrize("name", list(LABELS))
def test_the_labels_that_the_overview_dashboard_shows_have_values(scraped: Samples, name: str) -> None:
    (labels,) = scraped.labels_of(name)
    assert all(labels[label] for label in LABELS[name])


def test_the_exchanges_and_virtual_hosts_of_the_cluster_are_groups() -> None:
    scraped = Scraper().scrape("/metrics/detailed?family=vhost_status&family=exchange_names&family=exchange_bindings")
    assert scraped.labels_of("rabbitmq_cluster_vhost_status") == [{"vhost": "/"}]
    topic = {"vhost": "/", "exchange": "amq.topic", "type": "topic"}
    assert topic in scraped.labels_of("rabbitmq_cluster_exchange_name")
    assert topic in scraped.labels_of("rabbitmq_cluster_exchange_bindings")
