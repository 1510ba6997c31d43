"""The configurations of other servers in `examples`: formats, ports and topics."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jinja2
import pytest
import yaml

from gateway.config import Settings
from tests.interop.pages.blocks import ROOT

FOLDER: Final = ROOT / "examples/configurations"

#: The files of each format, so that no file is left out.
FORMATS: Final = {
    ".json": json.loads,
    ".yaml": yaml.safe_load,
    ".conf": tomllib.loads,
}

FILES: Final = sorted(path for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".md")

#: The port of Prometheus, which Grafana reads.
PROMETHEUS_PORT: Final = 9090


def read(name: str) -> Any:  # Any: JSON, YAML and TOML
    path = FOLDER / name
    return FORMATS[path.suffix](path.read_text())


def words_of(value: Any) -> Iterator[str]:
    """Yield all texts in a configuration."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, str):
        yield value
    elif not isinstance(value, int | float | None):
        for part in value:
            yield from words_of(part)


def matches(pattern: str, topic: str) -> bool:
    """Whether a topic filter without ``#`` matches a topic."""
    return re.fullmatch(pattern.replace("+", "[^/]+"), topic) is not None


#: The topics that the programs of the examples use.
TOPICS: Final = ("sensors/hall/temperature", "twins/lamp/desired", "twins/lamp/reported")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_has_its_format_and_the_page_names_it(path: Path) -> None:
    assert FORMATS[path.suffix](path.read_text())
    page = (FOLDER / "README.md").read_text()
    assert any(f"]({folder})" in page for folder in (str(path.relative_to(FOLDER)), *parents(path)))


def parents(path: Path) -> Iterator[str]:
    yield from (str(folder) for folder in path.relative_to(FOLDER).parents if folder != Path())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_ports_are_those_of_the_broker(path: Path) -> None:
    settings = Settings()
    usual = {settings.amqp.port, settings.mqtt.port, settings.prometheus.port, PROMETHEUS_PORT}
    named = re.findall(r"(?:127\.0\.0\.1:|\"port\": \")(\d+)", path.read_text())
    assert {int(port) for port in named} <= usual


def test_topics_are_those_of_the_programs() -> None:
    programs = "".join(path.read_text() for path in FOLDER.parent.glob("*/*.py"))
    for topic in ("twins/lamp/desired", "twins/lamp/reported", "sensors/{room}/temperature"):
        assert topic in programs
    for name in ("node-red/flows.json", "home-assistant/mqtt.yaml", "telegraf/telegraf.conf"):
        filters = [word for word in words_of(read(name)) if re.fullmatch(r"(sensors|twins)/[\w+]+/\w+", word)]
        assert filters
        for each in filters:
            assert any(matches(each, topic) for topic in TOPICS), f"{name}: {each}"


def test_the_nodes_of_node_red_are_wired_to_each_other() -> None:
    nodes = {node["id"]: node for node in read("node-red/flows.json")}
    for node in nodes.values():
        assert node.get("z", "rooms") in nodes
        assert node.get("broker") in (None, "gateway", "127.0.0.1")
        assert all(target in nodes for wires in node.get("wires", []) for target in wires)


def test_home_assistant_understands_what_the_lamp_reports() -> None:
    (switch,) = read("home-assistant/mqtt.yaml")["switch"]
    (availability,) = switch["availability"]
    assert json.loads(switch["payload_on"]) == {"power": "on"}
    for report, state, is_available in (
        ({"online": True, "power": "on"}, switch["state_on"], availability["payload_available"]),
        ({"online": False}, switch["state_off"], availability["payload_not_available"]),
    ):
        assert jinja2.Template(switch["value_template"]).render(value_json=report) == state
        assert jinja2.Template(availability["value_template"]).render(value_json=report) == is_available


def test_grafana_reads_the_kind_of_source_that_the_dashboard_needs() -> None:
    (source,) = read("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    dashboard = json.loads((ROOT / "etc/grafana/gateway.json").read_text())
    needed = [variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "datasource"]
    assert needed == [source["type"]]
    (scraped,) = yaml.safe_load((ROOT / "etc/prometheus/prometheus.yml").read_text())["scrape_configs"]
    assert scraped["static_configs"][0]["targets"] == [f"localhost:{Settings().prometheus.port}"]
