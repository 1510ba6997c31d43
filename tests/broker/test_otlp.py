"""A running broker sends its metrics to a collector of OpenTelemetry."""

import socket

import pytest

pytest.importorskip("opentelemetry.proto")

from tests.otlp_collector import Collector, collector
from tests.running import HOST, Gateway
from tests.waiting import wait_until


def turns_of(found: Collector) -> int:
    """Return the number of turns in the last metrics."""
    metric = found.metrics.get("gateway_turn_seconds")
    return 0 if metric is None else int(metric.histogram.data_points[0].count)


def test_a_collector_gets_gauges_sums_and_distributions(gateway: Gateway) -> None:
    with collector() as found:
        headers = "authorization=Bearer%20secret-7,x-tenant=shop"
        gateway.start(f"otlp.endpoint=http://{HOST}:{found.port}", "otlp.interval_s=1", f"otlp.headers={headers}")
        wait_until(lambda: turns_of(found) and "rabbitmq_queues" in found.metrics)
        assert gateway.stop() == 0
    assert set(found.paths) == {"/v1/metrics"}
    assert (found.headers[0]["authorization"], found.headers[0]["x-tenant"]) == ("Bearer secret-7", "shop")
    assert found.resource["service.name"] == "gateway"
    assert found.resource["service.instance.id"].startswith("gateway@")
    assert [point.as_double for point in found.metrics["rabbitmq_queues"].gauge.data_points] == [0]
    assert found.metrics["rabbitmq_connections_opened_total"].sum.is_monotonic
    assert "secret-7" not in gateway.log


def test_a_collector_that_fails_is_logged_once_and_gets_metrics_again(gateway: Gateway) -> None:
    with collector() as found:
        found.status = 401
        gateway.start(f"otlp.endpoint=http://{HOST}:{found.port}/v1/metrics", "otlp.interval_s=1")
        wait_until(lambda: len(found.paths) >= 3)
        found.status = 200
        wait_until(lambda: "takes metrics again" in gateway.log)
        assert gateway.log.count("does not take metrics") == 1
        assert "401" in gateway.log
        assert "Traceback" not in gateway.log
        assert gateway.stop() == 0


def test_a_collector_that_is_not_there_delays_neither_the_broker_nor_its_end(gateway: Gateway) -> None:
    with socket.socket() as silent:  # it accepts connections and never answers
        silent.bind((HOST, 0))
        silent.listen()
        gateway.start(f"otlp.endpoint=http://{HOST}:{silent.getsockname()[1]}", "otlp.interval_s=1")
        silent.settimeout(10)
        with silent.accept()[0]:
            assert gateway.stop() == 0
    assert "Traceback" not in gateway.log


@pytest.mark.parametrize("endpoint", ["localhost:4318", "grpc://collector:4317", "http://", "http://a b"])
def test_an_endpoint_that_is_no_url_is_refused(gateway: Gateway, endpoint: str) -> None:
    assert gateway.run_to_end(f"otlp.endpoint={endpoint}") == 65
    assert 'otlp.endpoint: must be a URL such as "http://localhost:4318/v1/metrics"' in gateway.log


def test_headers_of_another_form_are_refused_without_being_shown(gateway: Gateway) -> None:
    assert gateway.run_to_end("otlp.headers=Bearer secret-7") == 65
    assert "otlp.headers: must have the form" in gateway.log
    assert "secret-7" not in gateway.log
