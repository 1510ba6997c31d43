"""Metrics of plugins: exported with the broker's own, bounded, contained, and changed while the broker runs."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gateway.api import MetricSample, MetricSource, PluginMetric
from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT
from gateway.plugins.registry import load_plugins
from gateway.testing import FakeClock, MemoryBroker, check_metric_source
from tests.management.metrics.scraper import Scraper
from tests.plugins.test_plugin_docs import examples
from tests.protocols.amqp.dialogue import Gateway

EXAMPLES = examples("metrics.md")
NOTHING: Sequence[MetricSample] = [({}, 1)]


class Source(MetricSource):
    """Returns what the test sets; calls it if it is a function."""

    def __init__(self, *metrics: object) -> None:
        self.found: Any = metrics

    def metrics(self) -> Sequence[PluginMetric]:
        found: Sequence[PluginMetric] = self.found() if callable(self.found) else self.found
        return found


def use(scraper: Scraper, *sources: MetricSource, vhost: str = "/", plugin: str = "shop") -> list[Event]:
    """Use these sources in a virtual host; return the list to which faults are added."""
    broker = scraper.gateway.broker
    broker.plugins_in_use.metrics.use(vhost, sources)
    broker.plugins_in_use.faults.plugin_of = lambda name, part: plugin
    broker.plugins_in_use.plugin_of = lambda name, part: plugin  # type: ignore[method-assign]
    faults: list[Event] = []
    broker.events.subscribe(lambda event: faults.append(event) if event.name == FAULT else None)
    return faults


def orders(*samples: MetricSample, kind: Any = "counter", name: str = "orders_total") -> PluginMetric:
    return PluginMetric(name, kind, "Orders", samples)


# Export


def test_a_metric_is_exported_with_plugin_and_virtual_host() -> None:
    scraper = Scraper()
    scraper.gateway.broker.declare_vhost("other")
    use(scraper, Source(orders(({"country": "DE"}, 3), ({"country": "FR"}, 4))))
    use(scraper, Source(orders(({"country": "DE"}, 5))), vhost="other")
    samples = scraper.scrape()
    name = "gateway_plugin_shop_orders_total"
    assert samples.one(name, vhost="/", country="DE") == 3
    assert samples.one(name, vhost="/", country="FR") == 4
    assert samples.one(name, vhost="other", country="DE") == 5
    assert samples.text.count(f"# TYPE {name} counter") == 1


def test_the_time_of_the_calls_is_measured() -> None:
    scraper = Scraper()
    source = Source(orders(({}, 1)))
    use(scraper, source)
    scraper.scrape()
    scraper.scrape()
    ((_, time),) = list(scraper.gateway.broker.plugins_in_use.metrics.times_in("/"))
    assert time.calls == 2


# Faults


def _raises() -> Sequence[PluginMetric]:
    raise SystemExit("broken")


@pytest.mark.parametrize(
    ("metrics", "error"),
    [
        pytest.param(_raises, "SystemExit: broken", id="an exception"),
        pytest.param(lambda: None, "TypeError", id="no sequence"),
        pytest.param(("orders",), "'orders' is not a PluginMetric", id="a wrong type"),
        pytest.param((orders(name="Orders_total"),), "must be of lower-case letters", id="a wrong name"),
        pytest.param((orders(name="a" * 101 + "_total"),), "up to 100 characters", id="a long name"),
        pytest.param((orders(kind="summary"),), "must be counter or gauge", id="an unknown kind"),
        pytest.param((orders(kind="gauge"),), "ends with '_total'", id="a gauge named as a counter"),
        pytest.param((orders(name="orders"),), "ends with '_total'", id="a counter without the suffix"),
        pytest.param((orders(({"vhost": "/"}, 1)),), "the label 'vhost' is reserved", id="a reserved label"),
        pytest.param((orders(({"a": "x" * 257}, 1)),), "up to 256 characters", id="a long label"),
        pytest.param((orders(({"a": 1}, 1)),), "must be text", id="a label that is no text"),  # type: ignore[dict-item]
        pytest.param((orders(({}, float("nan"))),), "must be a finite number", id="no number"),
        pytest.param((orders(({}, True)),), "must be a finite number", id="a boolean"),
        pytest.param((orders(*[({"n": str(n)}, 1) for n in range(1001)]),), "has 1001 samples", id="many samples"),
        pytest.param((orders(({f"l{n}": "" for n in range(9)}, 1)),), "up to 8 names", id="many labels"),
        pytest.param((orders(({}, 1), ({}, 2)),), "two samples with the labels {}", id="a repeated sample"),
        pytest.param((orders(({"a": ""}, 1), ({"b": ""}, 2)),), "the same labels", id="different labels"),
        pytest.param((orders(5),), "while its samples were read", id="samples of a wrong type"),  # type: ignore[arg-type]
        pytest.param((orders(), orders()), "is returned twice", id="a repeated metric"),
        pytest.param(tuple(orders(name=f"m{n}_total") for n in range(101)), "returned 101 metrics", id="many metrics"),
    ],
)
def test_what_breaks_the_rules_is_a_fault_and_the_scrape_goes_on(metrics: object, error: str) -> None:
    scraper = Scraper()
    source = Source()
    source.found = metrics
    faults = use(scraper, source, Source(PluginMetric("visitors", "gauge", "", NOTHING)))
    samples = scraper.scrape()
    assert samples.one("gateway_plugin_shop_visitors", vhost="/") == 1
    assert [fault.details["plugin"] for fault in faults] == ["shop"]
    assert error in str(faults[0].details["error"])
    assert "test_metric_sources.py" in str(faults[0].details["place"])
    assert samples.sum("gateway_faults_total", kind="plugin metrics") == 1


def test_the_report_of_a_fault_is_no_time_of_the_source() -> None:
    clock = FakeClock()
    scraper = Scraper(gateway=Gateway(clock=clock))
    source = Source()
    source.found = _raises
    faults = use(scraper, source)
    scraper.gateway.broker.events.subscribe(lambda event: clock.advance(0.2))
    list(scraper.gateway.broker.plugins_in_use.metrics.read())
    assert [fault.details["error"] for fault in faults] == ["SystemExit: broken"]


def test_a_name_of_the_gateway_itself_is_refused() -> None:
    scraper = Scraper()
    faults = use(scraper, Source(orders(name="total", kind="gauge")), plugin="faults")
    scraper.scrape()
    assert "which is a metric of the gateway" in str(faults[0].details["error"])


def test_a_kind_that_differs_between_virtual_hosts_is_refused() -> None:
    scraper = Scraper()
    scraper.gateway.broker.declare_vhost("other")
    use(scraper, Source(PluginMetric("n", "gauge", "", NOTHING)))
    faults = use(scraper, Source(PluginMetric("n", "gauge", "", NOTHING), orders(({}, 1))), vhost="other")
    assert len(scraper.scrape().all("gateway_plugin_shop_n")) == 2
    assert not faults


# The example of the page, and changes while the broker runs


@pytest.fixture
def plugins_dir(tmp_path: Path) -> Path:
    (tmp_path / "applications.py").write_text(EXAMPLES["applications.py"])
    return tmp_path


@pytest.fixture
def applications(plugins_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(plugins_dir)
    yield __import__("applications")
    del sys.modules["applications"]


def test_the_tests_of_the_page_pass(applications: ModuleType) -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES["test_applications.py"], names)
    tests: list[Callable[[], None]] = [test for name, test in names.items() if name.startswith("test_")]
    assert len(tests) == 1
    for test in tests:
        test()


def test_the_plugin_of_the_page_is_asked_for_its_metrics_while_it_is_enabled(plugins_dir: Path) -> None:
    broker = MemoryBroker(registry=load_plugins(plugins_dir))
    broker.kernel.declare_vhost("with", plugins={"applications": {}})
    broker.kernel.declare_vhost("without")
    found = {
        vhost: [each.name for each in metrics] for vhost, _, metrics in broker.kernel.plugins_in_use.metrics.read()
    }
    assert found == {"with": ["messages_total", "bytes_total"]}
    broker.kernel.delete_vhost("with")
    broker.clock.advance(1)
    assert list(broker.kernel.plugins_in_use.metrics.read()) == []


# The contract


def test_the_check_accepts_a_source_that_counts() -> None:
    counts = [0]

    def count() -> None:
        counts[0] += 1

    source = Source()
    source.found = lambda: (orders(({}, counts[0])),)
    check_metric_source(source, count)
    assert counts == [3]


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        (lambda: 1 / 0, "metrics() raised ZeroDivisionError"),
        (lambda: (orders(name="x"),), "returned a wrong metric: the name of a counter"),
        (lambda: (orders(), orders()), "returned 'orders_total' twice"),
        (iter([(orders(({}, 2)),), (orders(({}, 1)),)]).__next__, "The counter orders_total fell from 2 to 1"),
    ],
)
def test_the_check_finds_what_breaks_the_rules(metrics: object, reason: str) -> None:
    source = Source()
    source.found = metrics
    with pytest.raises(AssertionError, match=reason.replace("(", r"\(").replace(")", r"\)")):
        check_metric_source(source)
