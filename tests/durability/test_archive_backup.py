"""docs/archive.md, how a table is backed up: what it says, done while the archive fills."""

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.durability.expected import Key
from tests.durability.test_archive_killed import SETTINGS, TIMEOUT_S, Trial, archived, files, trial, unnamed
from tests.running import PROJECT, gateway_in

__all__ = ["trial"]

PAGE: Final = (PROJECT / "docs" / "archive.md").read_text(encoding="utf-8")


def backed_up(data: Path, target: Path) -> None:
    """Do what the page says."""
    (commands,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    commands = commands.replace("gateway backup", f"{shlex.quote(sys.executable)} -m gateway backup")
    commands = commands.replace("/var/lib/gateway", str(data)).replace("/backup/monday", str(target))
    commands = commands.replace(" archive trace", " archive")
    subprocess.run(["sh", "-ec", commands], cwd=PROJECT, check=True, timeout=60, stdin=subprocess.DEVNULL)


def restored(directory: Path, owed: set[Key]) -> None:
    """Run a gateway on a copy until everything owed is in files."""
    with gateway_in(directory, *SETTINGS) as gateway:
        deadline = time.monotonic() + TIMEOUT_S
        while missing := owed - set(archived(gateway.data, "queue")):
            assert time.monotonic() < deadline, f"missing {len(missing)}, {min(missing)}:\n{gateway.log[-2000:]}"
            time.sleep(0.2)


def test_a_copy_made_under_load_is_complete(trial: Trial, tmp_path: Path) -> None:
    publishers = trial.load()
    deadline = time.monotonic() + TIMEOUT_S
    while len(list(files(trial.gateway.data))) < 4:
        assert time.monotonic() < deadline, "nothing is archived"
        time.sleep(0.1)
    owed = set(trial.queue.owed)
    backed_up(trial.gateway.data, tmp_path / "elsewhere" / "data")
    trial.gateway.kill()
    trial.ended(publishers)
    assert unnamed(tmp_path / "elsewhere" / "data") <= unnamed(trial.gateway.data)
    restored(tmp_path / "elsewhere", owed)


def test_a_copy_made_while_the_broker_is_stopped_has_no_duplicates(trial: Trial, tmp_path: Path) -> None:
    publishers = trial.load()
    time.sleep(2)
    trial.gateway.stop()
    trial.ended(publishers)
    backed_up(trial.gateway.data, tmp_path / "elsewhere" / "data")
    restored(tmp_path / "elsewhere", trial.queue.owed)
    assert max(archived(tmp_path / "elsewhere" / "data", "queue").values()) == 1
