"""``gateway simulate``: seeds, traces, kept items and errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.recording.lines import RecordedEvent, event_line, head_line
from gateway.simulation.findings import Finding
from gateway.simulation.run import RunOutcome
from gateway.simulation.shrinking import shrunk


@pytest.fixture(autouse=True)
def hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the hash seed with which the command runs in the process in which it was started."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")


def simulate(*words: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "gateway", "simulate", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)


def test_a_search_reports_its_seeds() -> None:
    ended = simulate("--seeds", "4", "--jobs", "2")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("4 seeds, 0 failed, ")


def test_a_seed_is_printed_as_a_dialogue_which_is_the_same_each_time() -> None:
    first, second = (simulate("--seed", "5", "--only", "0", "--trace", hash_seed="random") for _ in range(2))
    assert first.returncode == 0, first.stdout + first.stderr
    assert "Connection.OpenOk" in first.stdout
    assert first.stdout == second.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--trace"], "--trace, --only, --shrink and --save need --seed"),
        (["--seed", "1", "--only", "x"], "'x' is not a list"),
        (["--definitions", __file__], "--definitions needs --replay"),
        (["--replay", __file__, "--shrink"], "--only, --shrink and --save are for seeds, not for --replay and --plan"),
        (["--replay", "missing"], "'missing' does not exist"),
        (["--plan", __file__, "--seed", "1"], "--plan has a seed of its own"),
    ],
)
def test_wrong_options_are_one_line(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *words]) == 64
    assert reason in capsys.readouterr().err


def test_a_replay_prints_its_dialogue_and_differences(tmp_path: Path) -> None:
    events = [
        RecordedEvent(0.1, 1, "opened", "amqp", "127.0.0.1:50000"),
        RecordedEvent(0.2, 1, "received", data=b"AMQP\0\0\x09\x01"),
        RecordedEvent(0.3, 1, "sent", answers=["protocol header"]),
    ]
    path = tmp_path / "recording.jsonl"
    path.write_bytes(head_line("1", "now", hides_bodies=True) + b"".join(map(event_line, events)))
    ended = simulate("--replay", str(path), "--trace")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "amqp-1         > protocol header" in ended.stdout
    assert "connection 1 (amqp): 1 x 'connection.start' in the replay only; the answers part at the 1." in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("1 connections, 1 answers in ")


def test_a_file_that_is_no_recording_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--replay", __file__]) == 65
    assert "line 1: not JSON" in capsys.readouterr().err


def test_shrinking_keeps_the_items_that_are_needed() -> None:
    def run(seed: int, only: frozenset[int] | None = None) -> RunOutcome:
        kept = frozenset(range(6)) if only is None else only
        found = [Finding(0.0, "a rule", "details")] if {1, 4} <= kept else []
        return RunOutcome(seed, found, 6, 0, 0.0, [])

    assert shrunk(3, run=run) == {1, 4}
