"""Metrics for a collector of OpenTelemetry: kinds of data, distributions, batches of limited size."""

from collections.abc import Iterable, Sequence

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics.export import Gauge, Histogram, Metric, MetricsData, Sum
from prometheus_client import Metric as Family

from gateway.management.metrics.family import add_buckets, counter, gauge, histogram
from gateway.management.metrics.otlp import LARGEST_BATCH, OtlpPusher
from gateway.management.metrics.scrapes import node_scrape
from tests.management.metrics.scraper import Scraper

NOW_NS = 7_000_000_000


def pushed(families: Iterable[Family | None], *, is_busy: bool = False) -> list[MetricsData]:
    batches: list[MetricsData] = []
    pusher = OtlpPusher(lambda: families, batches.extend, lambda: is_busy, {"service.name": "shop"}, lambda: NOW_NS)
    for _ in pusher.pushing():
        pass
    return batches


def metrics_of(batches: Sequence[MetricsData]) -> list[Metric]:
    return [metric for batch in batches for metric in batch.resource_metrics[0].scope_metrics[0].metrics]


def test_a_gauge_is_a_gauge_and_a_counter_a_cumulative_sum() -> None:
    families = [counter("sent_total", "Sent", "vhost").metric([(("a",), 2)]), None, gauge("size", "Size").single(1.5)]
    sent, size = metrics_of(pushed(families))
    assert isinstance(sent.data, Sum)
    assert isinstance(size.data, Gauge)
    [point] = sent.data.data_points
    assert (sent.name, point.attributes, point.value, point.time_unix_nano) == ("sent_total", {"vhost": "a"}, 2, NOW_NS)
    assert sent.data.is_monotonic
    assert [point.value for point in size.data.data_points] == [1.5]


def test_each_bucket_of_a_distribution_has_its_own_count() -> None:
    family = histogram("wait_seconds", "Wait", "vhost")
    metric = family.empty()
    add_buckets(metric, family, ["a"], [0.1, 1.0], [3, 2, 1], 4.5)
    [wait] = metrics_of(pushed([metric]))
    assert isinstance(wait.data, Histogram)
    [point] = wait.data.data_points
    assert (point.explicit_bounds, point.bucket_counts) == ([0.1, 1.0], [3, 2, 1])
    assert (point.count, point.sum, point.attributes) == (6, 4.5, {"vhost": "a"})


def test_a_summary_is_two_sums() -> None:
    family = Family("calls", "Calls", "summary")
    family.add_sample("calls_count", {}, 3)
    family.add_sample("calls_sum", {}, 0.5)
    assert [metric.name for metric in metrics_of(pushed([family]))] == ["calls_count", "calls_sum"]


def test_batches_have_a_limited_number_of_data_points() -> None:
    rows = [((str(number),), number) for number in range(LARGEST_BATCH * 2 + 1)]
    batches = pushed([gauge("depth", "Depth", "queue").metric(rows)])
    sizes = [sum(len(metric.data.data_points) for metric in metrics_of([batch])) for batch in batches]
    assert sizes == [LARGEST_BATCH, LARGEST_BATCH, 1]


def test_nothing_is_collected_while_an_export_runs() -> None:
    assert pushed([gauge("size", "Size").single(1)], is_busy=True) == []


def test_all_metrics_of_a_node_have_a_form_in_otlp() -> None:
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics

    batches = pushed(node_scrape(Scraper().sources))
    names = {
        metric.name
        for batch in batches
        for metric in encode_metrics(batch).resource_metrics[0].scope_metrics[0].metrics
    }
    assert {"rabbitmq_queues", "gateway_turn_seconds", "rabbitmq_connections_opened_total"} <= names
