"""docs/metrics.md lists every metric; docs/monitoring.md names settings and paths that exist."""

import re
from pathlib import Path

from docs.tools.reference.metrics import PAGE, node_families, page
from gateway.config.catalogue import settings_by_key
from gateway.management.metrics import cluster_metrics
from gateway.management.metrics.exporter import FAMILIES as EXPORTER_FAMILIES
from gateway.management.metrics.objects import FAMILIES as OBJECT_FAMILIES
from tests.management.clusters import CLUSTER
from tests.management.metrics.scraper import Scraper

ROOT = Path(__file__).parents[3]
MONITORING = (ROOT / "docs" / "monitoring.md").read_text()


def described(path: str) -> set[str]:
    """Return the names of the metrics at a path, with the suffix of counters."""
    text = Scraper().answer(path).content.decode()
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


def test_the_page_of_metrics_is_generated_from_the_code() -> None:
    assert (ROOT / PAGE).read_text() == page(), "run: make docs"


def test_each_metric_of_the_node_is_listed_and_each_listed_one_exists() -> None:
    listed = {family.name for family in node_families()}
    in_files_only = {name for name in listed if name.startswith("gateway_store_") and "backlog" not in name}
    of_clusters = {family.name for family in cluster_metrics.FAMILIES}
    assert described("/metrics") == listed - in_files_only - of_clusters
    samples = [sample for metric in cluster_metrics.cluster(CLUSTER) for sample in metric.samples]
    assert {sample.name for sample in samples} == of_clusters


def test_each_metric_of_single_objects_is_listed_and_each_listed_one_exists() -> None:
    shown = described("/metrics/per-object")
    assert {family.name for family in OBJECT_FAMILIES} <= shown
    assert shown <= {family.name for family in (*node_families(), *OBJECT_FAMILIES)}


def test_each_metric_of_the_exporter_is_listed_and_each_listed_one_exists() -> None:
    assert described("/metrics/exporter") == {family.name for family in EXPORTER_FAMILIES}


def test_no_metric_is_described_twice() -> None:
    for families in (node_families(), EXPORTER_FAMILIES):
        names = [family.name for family in families]
        assert len(names) == len(set(names))


def test_the_settings_of_the_page_exist() -> None:
    settings = set(re.findall(r"`(prometheus(?:_tls)?\.\w+|otlp\.\w+)`", MONITORING))
    assert settings
    assert settings <= set(settings_by_key())
