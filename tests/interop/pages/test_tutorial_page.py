"""The programs of docs/tutorial.md, run unchanged: each receiver together with its sender."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.broker import Broker

PAGE = Path(__file__).parents[3] / "docs" / "tutorial.md"
TIMEOUT_S = 20

#: receiver, sender, output of the sender, output of the receiver
PATTERNS = [
    pytest.param("receive.py", "send.py", "sent", ["received Hello World!"], id="hello world"),
    pytest.param(
        "worker.py", "new_task.py", "sent", ["done first.", "done second..", "done third..."], id="work queues"
    ),
    pytest.param("receive_logs.py", "emit_log.py", "sent", ["log disk is nearly full"], id="publish and subscribe"),
    pytest.param("receive_severe_logs.py", "emit_severe_log.py", "sent", ["error all is lost"], id="routing"),
    pytest.param(
        "receive_topics.py",
        "emit_topic.py",
        "sent",
        ["kern.info a log line", "cron.critical a log line", "kern.critical a log line"],
        id="topics",
    ),
    pytest.param("rpc_server.py", "rpc_client.py", "fibonacci(30) is 832040", [], id="request and reply"),
]


def programs(broker: Broker) -> dict[str, str]:
    """Return the programs of the page by file name, for this broker."""
    found = re.findall(r"```python\n(# (\S+)\n.*?)```", PAGE.read_text(), re.DOTALL)
    return {name: program.replace("127.0.0.1:5672", f"{broker.host}:{broker.port}") for program, name in found}


@pytest.mark.parametrize(("receiver", "sender", "printed", "received"), PATTERNS)
def test_the_programs_of_a_pattern_work_unchanged(
    broker: Broker, tmp_path: Path, receiver: str, sender: str, printed: str, received: list[str]
) -> None:
    for name, program in programs(broker).items():
        (tmp_path / name).write_text(program)
    with subprocess.Popen([sys.executable, tmp_path / receiver], stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        try:
            assert waiting.stdout.readline() == "waiting\n"
            ended = subprocess.run(
                [sys.executable, tmp_path / sender], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
            )
            assert ended.stdout == f"{printed}\n"
            assert [waiting.stdout.readline().rstrip("\n") for _ in received] == received
        finally:
            waiting.kill()


def test_every_program_of_the_tutorial_is_run(broker: Broker) -> None:
    assert set(programs(broker)) == {name for pattern in PATTERNS for name in pattern.values[:2]}
