"""The driver: its report, its findings, and its error without atheris."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.decoders import trial
from tests.fuzz.decoders.__main__ import main
from tests.fuzz.decoders.findings import Findings
from tests.fuzz.decoders.inventory import ROOT
from tests.fuzz.decoders.laws import LawBroken, cuttings, require_any_cut
from tests.fuzz.decoders.target import Target


def driver(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz.decoders", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


def test_a_run_reports_runs_coverage_and_findings(tmp_path: Path) -> None:
    ended = driver("--only", "store-keys", "--runs", "300", "--seconds", "20", "--work", str(tmp_path))
    if find_spec("atheris") is None:  # there is no wheel for this system
        assert ended.returncode == 2
        assert "pip install atheris" in ended.stderr
        return
    assert ended.returncode == 0, ended.stdout + ended.stderr
    first, last = ended.stdout.splitlines()
    assert first.split()[:3] == ["store-keys", "300", "runs"]
    assert last == "300 runs of 1 targets, 0 findings"
    assert list((tmp_path / "inputs" / "store-keys").iterdir())


def test_an_input_can_be_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "input"
    file.write_bytes(bytes(8))
    assert main(["--only", "store-keys", "--replay", str(file)]) == 0
    assert capsys.readouterr().out == "store-keys obeys its laws\n"


def test_an_unknown_target_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nothing"]) == 2
    refusal = capsys.readouterr().err
    assert "no target begins with nothing" in refusal
    assert "amqp-tables" in refusal


def test_a_finding_is_written_once_with_the_command_that_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = Findings(tmp_path, "store-keys")
    for data in (b"one", b"two"):
        try:
            _fail()
        except ValueError as error:
            findings.add(data, error)
    assert len(findings) == 1
    [file] = [path for path in tmp_path.iterdir() if not path.suffix]
    assert file.read_bytes() == b"one"
    command = f'make fuzz-decoders ARGS="--only store-keys --replay {file}"'
    assert file.with_suffix(".txt").read_text().splitlines()[0] == command
    assert command in capsys.readouterr().out


def _fail() -> None:
    raise ValueError("a fault")


def test_time_and_memory_of_a_run_are_limited() -> None:
    def hungry(data: bytes) -> None:
        bytes(10 * 2**20)

    target = Target("t", hungry, (), tuple)
    ticks = iter([0.0, 1.5, 0.0, 0.5])
    with pytest.raises(LawBroken, match=r"3 bytes take 1\.50 s"):
        trial.run(target, b"abc", lambda: next(ticks))
    trial.run(target, b"abc", lambda: next(ticks))
    with pytest.raises(LawBroken, match="3 bytes take 10 MiB"):
        trial.run_measured(target, b"abc")


def test_a_decoder_that_depends_on_the_cut_breaks_a_law() -> None:
    assert all(b"".join(pieces) == b"abc" for pieces in cuttings(b"abc"))
    require_any_cut(b"abc", b"".join)
    with pytest.raises(LawBroken, match="any cut of the bytes"):
        require_any_cut(b"abc", len)
