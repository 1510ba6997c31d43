"""pipeline/examples/cluster.py: the end of a job's processes."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

EXAMPLES: Final = Path(__file__).parents[2] / "pipeline" / "examples"

#: Takes a while to end after SIGTERM, and says so at the end.
SLOW: Final = """
import signal, time
def end(number, frame):
    time.sleep(0.3)
    print("ended", flush=True)
    raise SystemExit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(60)
"""

DEAF: Final = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the example."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return import_module("cluster")


def started(code: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_the_end_of_a_driver_is_awaited(cluster: ModuleType) -> None:
    with started(SLOW) as driver:
        cluster.end_group(driver)
        assert driver.returncode == 0
        assert driver.stdout is not None
        assert driver.stdout.read() == b"ended\n"
        cluster.end_group(driver)  # one that has ended
        assert driver.returncode == 0


def test_a_driver_that_does_not_end_is_killed(cluster: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "END_S", 0.1)
    with started(DEAF) as driver:
        cluster.end_group(driver)
        assert driver.returncode == -9
