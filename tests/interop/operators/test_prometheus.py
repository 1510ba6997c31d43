"""Debian's Prometheus scrapes a running gateway: every query of the dashboards has an answer, the rules are valid."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

import pika
import pytest
from paho.mqtt import publish

from docs.tools.reference.metrics import node_families
from tests.interop.gateways import gateway_at
from tests.interop.operators.overview_queries import queries
from tests.ports import free_port
from tests.running import Gateway
from tests.waiting import wait_until

ETC: Final = Path(__file__).parents[3] / "etc"
RULES: Final = ETC / "prometheus" / "rules.yml"
DASHBOARD: Final = json.loads((ETC / "grafana" / "gateway.json").read_text())

#: The gateway's own queries whose series exist only while a plugin is called or fails, or a pipeline reports.
ABSENT_AT_FIRST: Final = (
    "gateway_plugin_seconds",
    "gateway_plugin_faults",
    "gateway_faults",
    "gateway_pipeline_consumer",
)


def promtool(*words: str, given: str = "") -> str:
    """Run promtool; return its output. :raises AssertionError: with it, if promtool finds an error."""
    done = subprocess.run(["promtool", *words], input=given, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Prometheus:
    """A Prometheus that scrapes one gateway each second."""

    def __init__(self, directory: Path, target: str) -> None:
        self.port = free_port()
        shutil.copy(RULES, directory / "rules.yml")
        text = (ETC / "prometheus" / "prometheus.yml").read_text()
        text = text.replace("15s", "1s").replace("localhost:15692", target)
        (directory / "prometheus.yml").write_text(text)
        self._log = (directory / "prometheus.log").open("w")
        self._child = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def get(self, path: str, **query: str) -> Any:
        """Return the data of an answer of its API."""
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(query)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, query: str) -> list[Any]:
        """Return the result of an instant query."""
        found: list[Any] = self.get("query", query=query)["result"]
        return found

    def answers(self, query: str) -> bool:
        """Return whether a query has a result by now."""
        try:
            return bool(self.query(query))
        except OSError:  # not started yet
            return False

    def stop(self) -> None:
        """Stop the process."""
        self._child.terminate()
        self._child.wait(10)
        self._log.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = gateway_at(tmp_path_factory.mktemp("gateway"))
    gateway.start()
    yield gateway
    gateway.end()


@pytest.fixture(scope="module")
def prometheus(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Return a Prometheus that has scraped the gateway at least twice, while messages passed."""
    host, port = gateway.addresses["prometheus"]
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), f"{host}:{port}")
    try:
        wait_until(lambda: prometheus.answers("rabbitmq_queues == 0"), lambda: "no scrape", timeout_s=30)
        exchange_messages(gateway)
        sent = "sum(rate(rabbitmq_global_messages_received_total[60s])) > 0"
        wait_until(lambda: prometheus.answers(sent), lambda: "no second scrape", timeout_s=30)
        yield prometheus
    finally:
        prometheus.stop()


def exchange_messages(gateway: Gateway) -> None:
    """Publish over AMQP and MQTT, consume, and leave messages in a queue."""
    connection = pika.BlockingConnection(pika.ConnectionParameters(*gateway.addresses["amqp"]))
    channel = connection.channel()
    channel.queue_declare("q")
    channel.confirm_delivery()
    for _ in range(20):
        channel.basic_publish("", "q", b"m" * 500)
    for _, (method, _, _) in zip(range(10), iter(lambda: channel.basic_get("q"), None), strict=False):
        channel.basic_ack(method.delivery_tag)
    connection.close()
    host, port = gateway.addresses["mqtt"]
    publish.single("t/1", b"m", qos=1, hostname=host, port=port)


def test_the_configuration_and_the_rules_are_valid() -> None:
    assert "SUCCESS" in promtool("check", "config", str(ETC / "prometheus" / "prometheus.yml"))
    assert "SUCCESS" in promtool("check", "rules", str(RULES))


def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    tests = shutil.copy(Path(__file__).parents[1] / "prometheus_rules_test.yml", tmp_path)
    assert "SUCCESS" in promtool("test", "rules", tests)


def test_alerts_and_dashboards_name_metrics_that_exist() -> None:
    suffixes = ("_bucket", "_sum", "_count")
    known = {family.name for family in node_families()}
    used = set(re.findall(r"\b((?:gateway|rabbitmq)_[a-z0-9_]+)", RULES.read_text() + json.dumps(DASHBOARD)))
    used -= {"gateway_overview"}
    for suffix in suffixes:
        used = {name.removesuffix(suffix) for name in used}
    assert used <= known


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object", "/metrics/exporter"])
def test_promtool_accepts_each_scrape(gateway: Gateway, path: str) -> None:
    host, port = gateway.addresses["prometheus"]
    with urlopen(f"http://{host}:{port}{path}", timeout=10) as answer:
        text = answer.read().decode()
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False, timeout=30
    )
    assert "error while linting" not in done.stderr, done.stderr


def test_prometheus_scrapes_the_gateway(prometheus: Prometheus) -> None:
    (target,) = prometheus.get("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    assert prometheus.query("rabbitmq_queue_messages_ready")[0]["value"][1] == "10"
    protocols = {each["metric"]["protocol"] for each in prometheus.query("rabbitmq_global_messages_received_total > 0")}
    assert {"amqp091"} < protocols


def test_each_query_of_rabbitmqs_overview_finds_its_series(prometheus: Prometheus) -> None:
    (identity,) = prometheus.query("rabbitmq_identity_info")
    cluster = identity["metric"]["rabbitmq_cluster"]
    asked = list(queries(cluster))
    assert len(asked) > 90
    assert [query for query in asked if not prometheus.query(query)] == []


def test_each_query_of_the_gateways_dashboard_finds_its_series(prometheus: Prometheus) -> None:
    panels = [panel for panel in DASHBOARD["panels"] if "targets" in panel]
    asked = [target["expr"].replace("$instance", ".*") for panel in panels for target in panel["targets"]]
    assert len(asked) > 30
    empty = [query for query in asked if not prometheus.query(query)]
    assert [query for query in empty if not any(name in query for name in ABSENT_AT_FIRST)] == []


def test_prometheus_evaluates_every_rule(prometheus: Prometheus) -> None:
    def healths() -> list[str]:
        return [rule["health"] for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    wait_until(lambda: "unknown" not in healths(), lambda: str(healths()), timeout_s=20)
    assert set(healths()) == {"ok"}
