"""The audit record of a running broker is verified after kills, and a change in its store is found."""

from pathlib import Path

import pytest

from gateway.cli.ctl.main import main
from tests.management_client import put
from tests.running import Gateway, gateway_in


def verify(gateway: Gateway, *options: str) -> int:
    host, port = gateway.addresses["management"]
    return main(["verify_audit", *options, "--url", f"http://{host}:{port}", "-q"])


def test_the_chain_is_whole_after_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gateway_in(tmp_path) as gateway:
        for run in range(3):
            for number in range(5):
                put(gateway, f"vhosts/{run}-{number}", {})
            assert verify(gateway) == 0
            note = capsys.readouterr().out.split()[-1]
            gateway.restart()
            assert verify(gateway, "--since", note) == 0
            assert f"{5 * (run + 1)} entries are unchanged" in capsys.readouterr().out
