"""A plugin that blocks the event loop is named in the log, with its file and line, while it does."""

from pathlib import Path

import pytest

from tests.broker.conftest import Connect
from tests.running import Gateway

PLUGIN = """
import time
from gateway.api import hookimpl

class Sleeping:
    def __init__(self, arguments):
        pass
    def bind(self, binding):
        pass
    def unbind(self, binding):
        pass
    def route(self, message):
        time.sleep(2.5)
        return []

@hookimpl
def gateway_exchange_types():
    return {"x-sleeping": Sleeping}
"""


@pytest.fixture
def sleeping(gateway: Gateway, tmp_path: Path) -> Gateway:
    directory = tmp_path / "plugins"
    directory.mkdir(mode=0o755)
    (directory / "sleeping.py").write_text(PLUGIN)
    return gateway.start(f"plugins_dir={directory}", 'vhosts."/".plugins.sleeping={}')


def test_the_log_names_the_plugin_that_blocks_the_reactor(sleeping: Gateway, connect: Connect) -> None:
    channel = connect().channel()
    channel.exchange_declare("x", "x-sleeping")
    channel.basic_publish("x", "k", b"")
    line = sleeping.log_has("the reactor is blocked")
    assert "the reactor goes on" not in sleeping.log, "it is logged while the plugin blocks"
    (blocked,) = [each for each in line.splitlines() if "the reactor is blocked" in each]
    number = PLUGIN.splitlines().index("        time.sleep(2.5)") + 1
    assert "plugin=sleeping" in blocked
    assert "function=Sleeping.route" in blocked
    assert f"sleeping.py:{number}" in blocked
    sleeping.log_has("the reactor goes on")
    slow = sleeping.log_has("a turn of the event loop took long")
    assert "of type x-sleeping, plugin 'sleeping', vhost '/'" in slow
    assert "processor_wait_ms=" in slow
    assert "the call took 25" in sleeping.log_has("fault contained")
