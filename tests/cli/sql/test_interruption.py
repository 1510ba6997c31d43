"""Ctrl-C ends a query."""

import os
import signal
import subprocess
import sys

import pytest

from gateway.cli.exits import INTERRUPTED
from tests.pipeline.stream_broker import StreamBroker

#: The first test waits for archives, whose worker has a low priority.
pytestmark = pytest.mark.timeout(300)


def test_an_interrupt_ends_a_long_query(broker: StreamBroker) -> None:
    endless = "select range from range(1000000000000)"
    command = [sys.executable, "-m", "gateway.cli.ctl", "sql", endless, "--url", broker.options()["url"], "-s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"0\n", "it runs"
        os.kill(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors.strip()) == (INTERRUPTED, b"")
