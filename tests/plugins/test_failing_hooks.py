"""Faults are injected into every hook: the plugin is refused or inert, with its file and line; others go on."""

from pathlib import Path

import pytest

from gateway import hookspecs
from gateway.api import ConfigurationError
from gateway.cli.exits import DATA_ERROR
from gateway.cli.main import main
from gateway.kernel.messages.message import Message
from gateway.testing import header_of
from tests.plugins.live import LiveBroker, do

HOOKS = [name for name in vars(hookspecs) if name.startswith("gateway_")]

#: What the body of a hook does, and a part of the reason that the operator gets.
FAULTS = [
    pytest.param("raise KeyError('lost')", "KeyError: 'lost'", id="raises"),
    pytest.param("raise SystemExit(3)", "SystemExit: 3", id="exits"),
    pytest.param("return None", "returned None", id="returns None"),
    pytest.param("return 3", "returned 3", id="returns a number"),
    pytest.param("return [3]", "3", id="returns a list of numbers"),
    pytest.param("return {'x-mine': 3}", "x-mine", id="returns a mapping to a number"),
]


def source(hook: str, body: str) -> str:
    """Return a plugin with one hook, whose third line is its body."""
    return f"from gateway.api import hookimpl\n@hookimpl\ndef {hook}(): {body}\n"


@pytest.mark.parametrize(("body", "reason"), FAULTS)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_plugin_whose_hook_fails_is_refused(hook: str, body: str, reason: str, tmp_path: Path) -> None:
    broker = LiveBroker(tmp_path)
    broker.write("mine", source(hook, body))
    with pytest.raises(ConfigurationError) as refused:
        do(broker.live.enabling("/", "mine"))
    assert "plugin 'mine' (" in str(refused.value)
    assert str(tmp_path / "mine.py") in str(refused.value)
    assert reason in str(refused.value)
    assert "mine" not in broker.live.enabled("/")
    broker.vhost.declare_queue("q")
    broker.vhost.publish(broker.vhost.default_exchange, Message("", "q", header_of(), b"one"))
    assert len(broker.vhost.queue("q")) == 1


@pytest.mark.parametrize("hook", HOOKS)
def test_a_plugin_whose_hook_fails_at_the_start_is_inert(hook: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(source(hook, "raise KeyError('lost')"))
    broker = LiveBroker(tmp_path, 'vhosts."/".plugins.mine={}')
    assert f"{tmp_path / 'mine.py'}:3" in broker.access.view_in_use("/").inert["mine"]
    assert "mine" not in broker.access.view_in_use("other").inert
    assert broker.vhost.declare_queue("q").name == "q"


@pytest.mark.parametrize("hook", HOOKS)
def test_gateway_check_reports_a_hook_that_fails(hook: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir(mode=0o700)
    (plugins / "mine.py").write_text(source(hook, "raise KeyError('lost')"))
    options = ["--data", str(tmp_path / "data"), "--set", f"plugins_dir={plugins}"]
    assert main(["check", *options, "--set", 'vhosts."/".plugins.mine={}']) == DATA_ERROR
    assert f"{plugins / 'mine.py'}:3" in capsys.readouterr().err


def test_an_interceptor_that_declares_no_set_of_exchanges_is_refused(tmp_path: Path) -> None:
    broker = LiveBroker(tmp_path)
    broker.write(
        "mine",
        "from gateway.api import Interceptor, hookimpl\n"
        "class Mine(Interceptor):\n    exchanges = 'orders'\n"
        "@hookimpl\ndef gateway_interceptors(): return [Mine()]\n",
    )
    with pytest.raises(ConfigurationError, match="exchanges must be a set of names, not 'orders'"):
        do(broker.live.enabling("/", "mine"))
    assert broker.vhost.interception.publishing is None
