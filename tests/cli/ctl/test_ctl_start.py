"""The start of ``gatewayctl``, which scripts run for each verb."""

import subprocess
import sys

PRINT_PACKAGES = """
import sys
import gateway.cli.ctl.main
print(*sorted(name for name in sys.modules if name in sys.argv[1:]))
"""

#: What the broker needs, which takes two thirds of a second to import.
OF_THE_BROKER = ("gateway.access", "gateway.config", "gateway.kernel.vhosts", "pydantic", "twisted", "pluggy")


def test_nothing_of_the_broker_is_imported_for_all_verbs() -> None:
    command = [sys.executable, "-c", PRINT_PACKAGES, *OF_THE_BROKER]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "\n"
