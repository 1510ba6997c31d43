"""Panels of plugins: no code of a plugin runs in the browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import Gateway
from tests.ui.browser import Browser, chromium
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


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the plugin."""
    directory = tmp_path_factory.mktemp("plugins")
    directory.chmod(0o755)
    (directory / "customers.py").write_text(PLUGIN)
    return directory / "customers.py"


@pytest.fixture(scope="module")
def browser(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser at a gateway with the plugin in the virtual host ``/``."""
    directory = tmp_path_factory.mktemp("gateway")
    config = directory / "gateway.toml"
    config.write_text(f'plugins_dir = "{file.parent}"\n\n[vhosts."/".plugins]\ncustomers = {{}}\n')
    gateway = Gateway(directory / "gateway")
    gateway.options = ("--config", str(config))
    try:
        host, port = gateway.start().addresses["management"]
        with chromium(f"http://{host}:{port}") as window:
            window.log_in("guest")
            yield window
    finally:
        gateway.end()


def test_a_plugin_shows_tables_and_numbers_as_text(browser: Browser) -> None:
    browser.open("/")
    browser.see("Best customers")
    browser.see(MARKUP)
    browser.see("1,234 pieces")
    browser.open("/queues")
    browser.see("Counts")
    browser.see("77")
    assert browser.driver.title == "Queues and streams · gateway"
    assert browser.complaints() == []


def test_a_plugin_is_reloaded_from_its_file_and_rolled_back(browser: Browser, file: Path) -> None:
    browser.open("/plugins/%2F/customers")
    file.write_text(PLUGIN.replace("1234", "4321"))
    browser.press("Reload")
    browser.see("'customers' is reloaded.")
    browser.open("/")
    browser.see("4,321 pieces")
    browser.open("/plugins/%2F/customers")
    browser.press("Roll back")
    browser.see("Roll 'customers' back?")
    browser.press("Roll back")
    browser.see("'customers' runs the version before.")
    browser.open("/")
    browser.see("1,234 pieces")


def test_a_plugin_whose_file_is_broken_keeps_its_version(browser: Browser, file: Path) -> None:
    browser.open("/plugins/%2F/customers")
    file.write_text("this is not Python")
    browser.press("Reload")
    browser.wait(lambda: browser.all(".toast.bad"), "no error is shown")
    browser.open("/")
    browser.see("1,234 pieces")
    browser.complaints()
