"""Panels of plugins: no code of a plugin runs in the browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import Gateway
from tests.ui.browser import chromium
from tests.ui.traffic import MARKUP

PLUGIN = f"""
from gateway.api import HttpRequest, HttpResource, PanelColumn, TracedVhost, UiPanel, hookimpl


def customers(request: HttpRequest) -> object:
    return [{{"customer": {MARKUP!r}, "messages": 1234}}]


def numbers(request: HttpRequest) -> object:
    return {{"Seen": 77}}


@hookimpl
def gateway_http_resources(vhost: TracedVhost) -> list[HttpResource]:
    return [HttpResource("customers", customers), HttpResource("numbers", numbers)]


@hookimpl
def gateway_ui_panels() -> list[UiPanel]:
    columns = [PanelColumn("customer", "Customer"), PanelColumn("messages", "Messages", "pieces")]
    return [
        UiPanel("Best customers", "customers", page="overview", columns=columns),
        UiPanel("Counts", "numbers", kind="numbers", page="queues"),
    ]
"""


@pytest.fixture
def panels(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with the plugin in the virtual host ``/``."""
    directory = tmp_path / "plugins"
    directory.mkdir(mode=0o755)
    (directory / "customers.py").write_text(PLUGIN)
    config = tmp_path / "gateway.toml"
    config.write_text(f'plugins_dir = "{directory}"\n\n[vhosts."/".plugins]\ncustomers = {{}}\n')
    gateway = Gateway(tmp_path / "gateway")
    gateway.options = ("--config", str(config))
    try:
        yield gateway.start()
    finally:
        gateway.end()


def test_a_plugin_shows_tables_and_numbers_as_text(panels: Gateway) -> None:
    host, port = panels.addresses["management"]
    with chromium(f"http://{host}:{port}") as browser:
        browser.log_in("guest")
        browser.see("Best customers")
        browser.see(MARKUP)
        browser.see("1,234 pieces")
        browser.open("/queues")
        browser.see("Counts")
        browser.see("77")
        assert browser.driver.title == "Queues and streams · gateway"
        assert browser.complaints() == []
