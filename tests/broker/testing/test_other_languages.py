"""The command of docs/testing.md for tests in other languages, as the page has it."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

from tests.waiting import TIMEOUT_S

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


def blocks() -> tuple[str, str]:
    """Return the command of the page and the lines that it shows."""
    section = PAGE.read_text().partition("\n## Other languages\n")[2].partition("\n## ")[0]
    (command,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    return command, shown


@pytest.fixture
def broker(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """The process of the command, which has the directory of ``gateway`` in its path."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = f"exec {blocks()[0]}"  # so that SIGTERM goes to the broker, not to a shell
    with subprocess.Popen(["sh", "-c", command], env=environment, stdout=subprocess.PIPE, text=True) as process:
        limit = Timer(TIMEOUT_S, process.kill)
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()


def test_the_command_prints_the_listeners_of_the_page_and_ends_with_sigterm(broker: "subprocess.Popen[str]") -> None:
    shown = blocks()[1].splitlines()
    assert broker.stdout is not None
    printed = [broker.stdout.readline().rstrip("\n") for _ in shown]
    assert [general(line) for line in printed] == [general(line) for line in shown]
    for line in printed[1:]:
        host, _, port = line.split()[1].rpartition(":")
        socket.create_connection((host, int(port)), timeout=TIMEOUT_S).close()
    broker.send_signal(signal.SIGTERM)
    rest = broker.stdout.read()
    assert not re.search(r"^  \w+ +127[.]0[.]0[.]1:\d+$", rest, re.MULTILINE)  # the page shows all listeners
    assert broker.wait(TIMEOUT_S) == 0


def general(line: str) -> str:
    """Return a line of the output without what each start changes: the version, the directory and the ports."""
    line = re.sub(r"^gateway [^ ]+ is", "gateway VERSION is", line)
    return re.sub(r":\d+$", ":PORT", re.sub(r"data in .*", "data in DIRECTORY", line))
