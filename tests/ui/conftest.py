"""Fixtures: one gateway with traffic of all protocols and one browser for all tests of the web UI."""

from collections.abc import Iterator

import pytest

from tests.broker.tls.certificates import Authority
from tests.interop import node_package
from tests.interop.tools import program
from tests.running import Gateway, gateway_in
from tests.ui.browser import DESKTOP, NODE_PACKAGE, Browser, chromium
from tests.ui.traffic import declare, traffic, write_results


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that is in use."""
    directory = tmp_path_factory.mktemp("ui")
    write_results(directory / "results")
    certificate, key = Authority(directory).sign("localhost")
    settings = (
        f"pipeline.results_dir={directory / 'results'}", f"tls.certificate={certificate}", f"tls.key={key}",
        "web_mqtts.port=0",
    )  # fmt: skip
    with gateway_in(directory, *settings) as gateway:
        declare(gateway)
        with traffic(gateway):
            yield gateway


@pytest.fixture(scope="session")
def window(shop: Gateway) -> Iterator[Browser]:
    """The browser, not logged in."""
    program("chromium"), program("chromedriver")
    node_package.install(NODE_PACKAGE)
    host, port = shop.addresses["management"]
    with chromium(f"http://{host}:{port}") as browser:
        yield browser


@pytest.fixture
def browser(window: Browser) -> Iterator[Browser]:
    """The browser with an administrator logged in; pages must not cause errors."""
    window.resize(DESKTOP)
    window.set_theme("light")
    if window.user != "guest":
        window.log_in("guest")
    window.forget()
    yield window
    assert window.complaints() == []
