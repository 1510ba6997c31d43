"""The audit record and the workbench of a running node: their settings, and changes that come from its files."""

import json
import signal
from pathlib import Path
from urllib.request import Request, urlopen

from gateway.config import Settings
from gateway.kernel.broker.audit_log import AuditRules
from gateway.kernel.workbench.workbench import WorkbenchRules
from gateway.node.audit import audit_rules, workbench_rules
from tests.running import Gateway
from tests.waiting import wait_until

#: The default user.
AUTHORIZATION = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}


def entries(gateway: Gateway) -> list[tuple[str, str]]:
    """The surfaces and actions of the record, the oldest first."""
    host, port = gateway.addresses["management"]
    request = Request(f"http://{host}:{port}/api/audit", headers=AUTHORIZATION)
    with urlopen(request, timeout=10) as answer:
        return [(each["surface"], each["action"]) for each in reversed(json.load(answer)["items"])]


def confirm_a_change(gateway: Gateway) -> None:
    """Create a virtual host; the answer comes when it is durable."""
    host, port = gateway.addresses["management"]
    request = Request(f"http://{host}:{port}/api/vhosts/durable", method="PUT", headers=AUTHORIZATION)
    with urlopen(request, timeout=10) as answer:
        assert answer.status == 201


def test_the_default_settings_are_the_default_limits() -> None:
    assert audit_rules(Settings()) == AuditRules()
    assert workbench_rules(Settings()) == WorkbenchRules()


def test_definitions_and_a_reload_are_recorded_and_survive_a_kill(gateway: Gateway, tmp_path: Path) -> None:
    definitions = tmp_path / "definitions.json"
    definitions.write_text('{"vhosts": [{"name": "shop"}]}')
    settings = tmp_path / "gateway.toml"
    settings.write_text(f'load_definitions = "{definitions}"\n')
    gateway.options = ("--config", str(settings))
    gateway.start()
    assert entries(gateway) == [("definitions", "definitions.imported")]
    settings.write_text(f'load_definitions = "{definitions}"\nmemory_high_watermark = 0.5\n')
    gateway.child.send_signal(signal.SIGHUP)
    wanted = [("definitions", "definitions.imported"), ("configuration", "settings.reloaded")]
    wait_until(lambda: entries(gateway) == wanted, lambda: f"{entries(gateway)}\n{gateway.log}")
    confirm_a_change(gateway)  # the store writes in order: what came before it is durable as well
    gateway.restart()
    assert entries(gateway)[:2] == wanted
