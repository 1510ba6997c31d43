"""The metrics listener: RabbitMQ's paths and query, formats, compression, logins, and steps that are short."""

import gzip
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from gateway.management.metrics.exposition import Exposition, label_text
from gateway.management.metrics.family import counter, gauge
from gateway.management.metrics.scrapes import detailed_scrape
from tests.management.metrics.scraper import Samples, Scraper


@pytest.fixture
def scraper() -> Scraper:
    scraper = Scraper()
    for vhost in ("other", "third"):
        scraper.gateway.broker.declare_vhost(vhost)
    for name in ("/", "other", "third"):
        scraper.gateway.broker.vhost(name).declare_queue(f"q in {name}")
    return scraper


def vhosts_of(samples: Samples) -> set[str]:
    return {labels["vhost"] for labels in samples.labels_of("rabbitmq_detailed_queue_messages")}


# Paths


def test_metrics_per_object_have_a_sample_for_each_queue(scraper: Scraper) -> None:
    samples = scraper.scrape("/metrics/per-object")
    assert {labels["queue"] for labels in samples.labels_of("rabbitmq_queue_messages_ready")} == {
        *("q in /", "q in other", "q in third")
    }
    assert samples.labels_of("rabbitmq_identity_info")[0]["rabbitmq_endpoint"] == "per-object"


def test_a_setting_makes_metrics_per_object_the_default() -> None:
    scraper = Scraper(per_object=True)
    scraper.gateway.vhost.declare_queue("q")
    assert scraper.scrape().labels_of("rabbitmq_queue_messages_ready") == [{"vhost": "/", "queue": "q"}]


def test_a_query_selects_families_and_virtual_hosts(scraper: Scraper) -> None:
    query = "family=queue_coarse_metrics&family=connection_churn_metrics"
    both = scraper.scrape(f"/metrics/detailed?{query}&vhost=other&vhost=%2F")
    assert vhosts_of(both) == {"/", "other"}
    assert both.one("rabbitmq_detailed_queues_created_total") == 3
    assert not both.all("rabbitmq_detailed_queue_consumers")
    assert vhosts_of(scraper.scrape(f"/metrics/detailed?{query}")) == {"/", "other", "third"}
    assert vhosts_of(scraper.scrape(f"/metrics/detailed?{query}&vhost=absent")) == set()


def test_without_a_family_there_is_only_the_identity(scraper: Scraper) -> None:
    names = scraper.scrape("/metrics/detailed").names
    assert names == {"rabbitmq_identity_info", "rabbitmq_build_info"}


def test_an_unknown_family_is_refused_with_the_known_ones(scraper: Scraper) -> None:
    answer = scraper.answer("/metrics/detailed?family=queues")
    assert answer.status == 400
    assert "unknown family 'queues': it must be one of auth_attempt_detailed_metrics," in answer.json["reason"]


def test_a_family_without_meaning_here_is_empty(scraper: Scraper) -> None:
    assert scraper.scrape("/metrics/detailed?family=ra_metrics").names == {
        *("rabbitmq_identity_info", "rabbitmq_build_info")
    }


@pytest.mark.parametrize("path", ["/metrics/absent", "/", "/api/overview"])
def test_other_paths_do_not_exist(scraper: Scraper, path: str) -> None:
    assert scraper.answer(path).status == 404


def test_other_methods_are_refused(scraper: Scraper) -> None:
    assert scraper.ask("POST", "/metrics", {}, user=None).status == 405


# Logins


def test_a_setting_requires_a_login_of_a_monitoring_user() -> None:
    scraper = Scraper(requires_login=True)
    scraper.add_user("watcher", "monitoring")
    scraper.add_user("clerk", "management")
    statuses = [scraper.answer(user=user).status for user in (None, "clerk", "watcher", "guest")]
    assert statuses == [401, 401, 200, 200]


# Formats


def test_the_text_format_is_the_default(scraper: Scraper) -> None:
    assert scraper.answer().headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object", "/metrics/exporter"])
def test_open_metrics_are_sent_to_those_who_accept_them(scraper: Scraper, path: str) -> None:
    answer = scraper.answer(path, headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.content.endswith(b"# EOF\n")
    names = [family.name for family in open_metrics(answer.content.decode())]
    assert len(names) == len(set(names)) > 30


@pytest.mark.parametrize(
    ("accepted", "is_compressed"), [("gzip", True), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("identity", False)]
)
def test_a_scrape_is_compressed_for_those_who_accept_it(scraper: Scraper, accepted: str, is_compressed: bool) -> None:
    answer = scraper.answer("/metrics/per-object", headers={"Accept-Encoding": accepted})
    assert (answer.headers.get("content-encoding") == "gzip") is is_compressed
    text = gzip.decompress(answer.content) if is_compressed else answer.content
    assert b"rabbitmq_queue_messages_ready{" in text


NAMES = st.dictionaries(st.sampled_from(["vhost", "queue", "channel"]), st.text(max_size=20), min_size=1)


@given(
    labels=NAMES, value=st.floats(min_value=0, allow_infinity=False), is_open=st.booleans(), is_counter=st.booleans()
)
def test_lines_say_what_the_client_library_says(
    labels: dict[str, str], value: float, is_open: bool, is_counter: bool
) -> None:
    names = tuple(labels)
    family = counter("x_total", "Help", *names) if is_counter else gauge("x", "Help", *names)
    exposition = Exposition("application/openmetrics-text" if is_open else "")
    theirs = exposition.encoded(family.metric([(tuple(labels.values()), value)])).decode()
    ours = b"".join(exposition.lines(family, [(label_text(labels), value)])).decode()
    parse = (lambda text: open_metrics(text + "# EOF\n")) if is_open else text_string_to_metric_families
    assert list(parse(ours)) == list(parse(theirs))
    assert ours.rpartition(" ")[0] == theirs.rpartition(" ")[0]


# Steps


def test_no_step_of_a_scrape_handles_many_queues() -> None:
    scraper = Scraper()
    for number in range(300):
        scraper.gateway.vhost.declare_queue(f"q{number}")
    transport = scraper.send("GET", "/metrics/detailed?family=queue_metrics", user=None)
    assert transport.value() == b""
    samples = scraper.scrape("/metrics/detailed?family=queue_metrics")
    assert len(samples.labels_of("rabbitmq_detailed_queue_consumers")) == 300
    pieces = list(_pieces(scraper))
    assert max(piece.count(b"\n") for piece in pieces) <= 66
    assert sum(not piece for piece in pieces) >= 300


def _pieces(scraper: Scraper) -> Iterator[bytes]:
    vhosts = list(scraper.gateway.broker.vhost_by_name.values())
    yield from detailed_scrape(scraper.sources, Exposition(""), ["queue_metrics"], vhosts)
