"""The backup commands of docs/archive.md, run while an archive is written."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.durability.expected import Key
from tests.durability.test_archive_killed import SETTINGS, TIMEOUT_S, ArchiveTrial, archived, files, trial, unnamed
from tests.running import PROJECT, gateway_in
from tests.waiting import wait_until

__all__ = ["trial"]

PAGE: Final = (PROJECT / "docs" / "archive.md").read_text(encoding="utf-8")


def back_up(data: Path, target: Path) -> None:
    """Run the commands of the page."""
    (commands,) = (each for each in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "gateway backup" in each)
    commands = commands.replace("gateway backup", f"{shlex.quote(sys.executable)} -m gateway backup")
    commands = commands.replace("/var/lib/gateway", str(data)).replace("/backup/monday", str(target))
    commands = commands.replace(" archive trace", " archive")
    subprocess.run(["sh", "-ec", commands], cwd=PROJECT, check=True, timeout=60, stdin=subprocess.DEVNULL)


def wait_until_restored(directory: Path, required: set[Key]) -> None:
    """Run a gateway on a copy until all required messages are in files."""
    with gateway_in(directory, *SETTINGS) as gateway:
        wait_until(
            lambda: required <= set(archived(gateway.data, "queue")),
            lambda: f"missing {min(required - set(archived(gateway.data, 'queue')))}:\n{gateway.log[-2000:]}",
            timeout_s=TIMEOUT_S,
            interval_s=0.2,
        )


def wait_until_archived(trial: ArchiveTrial, count: int) -> None:
    """Wait until there are so many files."""
    wait_until(lambda: len(list(files(trial.gateway.data))) >= count, "too little is archived", timeout_s=TIMEOUT_S)


def test_a_copy_made_under_load_is_complete(trial: ArchiveTrial, tmp_path: Path) -> None:
    publishers = trial.load()
    wait_until_archived(trial, 4)
    required = set(trial.expectations["queue"].required)
    back_up(trial.gateway.data, tmp_path / "copy" / "data")
    trial.gateway.kill()
    trial.ended(publishers)
    copy = tmp_path / "copy" / "data"
    assert all(path.is_file() for _, path in files(copy)), "a manifest names a file that was not copied"
    # files that were completed while the commands ran: readers ignore them, and the restored broker writes them again
    completed = {path.name for _, path in files(trial.gateway.data)}
    completed |= {Path(path).name for path in unnamed(trial.gateway.data)}
    assert {Path(path).name for path in unnamed(copy)} <= completed
    wait_until_restored(tmp_path / "copy", required)


def test_a_copy_made_while_the_broker_is_stopped_has_no_duplicates(trial: ArchiveTrial, tmp_path: Path) -> None:
    publishers = trial.load()
    wait_until_archived(trial, 2)
    trial.gateway.stop()
    trial.ended(publishers)
    back_up(trial.gateway.data, tmp_path / "copy" / "data")
    wait_until_restored(tmp_path / "copy", trial.expectations["queue"].required)
    assert max(archived(tmp_path / "copy" / "data", "queue").values()) == 1
