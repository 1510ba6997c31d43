"""Debian's Mosquitto, separate from any Mosquitto that already runs on the machine."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.load.processes import free_port
from benchmarks.load.running import Broker, running
from benchmarks.load.workloads import MQTT

#: No persistence and no log, for maximum speed; no limit that a workload could reach.
SETTINGS: Final = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence false
log_type none
set_tcp_nodelay true
max_inflight_messages 1000
max_queued_messages 0
"""


def absence() -> str | None:
    """Return the reason why it cannot run, or None. It is not installed automatically: its package starts a service."""
    return None if _program() else "Debian's mosquitto is not installed (apt-get install mosquitto)"


@contextmanager
def launch(directory: Path) -> Iterator[Broker]:
    """Run it until the context ends."""
    ports = {MQTT: free_port()}
    settings = directory / "mosquitto.conf"
    settings.write_text(SETTINGS.format(port=ports[MQTT]))
    command = [_program() or "mosquitto", "-c", str(settings)]
    with running("mosquitto", command, os.environ, directory, ports, _product, timeout_s=30.0) as broker:
        yield broker


def _product(ports: Mapping[str, int]) -> str:
    """Return its name and version, from the first line of its help."""
    answer = subprocess.run([_program() or "mosquitto", "-h"], capture_output=True, text=True, check=False)
    return "Mosquitto " + answer.stdout.partition("\n")[0].rpartition(" ")[2]


def _program() -> str | None:
    """Return its path, which Debian installs outside of users' PATH."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
