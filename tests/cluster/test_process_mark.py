"""The mark of a process: it says that the process has ended only if that is certain."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from gateway.node.cluster.process_mark import has_ended, own_mark
from tests.waiting import wait_until

#: Prints its mark, and waits.
CHILD = "from gateway.node.cluster.process_mark import own_mark; print(own_mark(), flush=True); input()"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        (sys.executable, "-c", CHILD), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def mark_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def test_a_process_that_was_killed_has_ended_also_before_its_parent_knows(child: subprocess.Popen[str]) -> None:
    mark = mark_of(child)
    assert not has_ended(mark)
    child.kill()
    wait_until(lambda: has_ended(mark))
    assert child.returncode is None
    child.wait()
    assert has_ended(mark)


def test_another_process_with_its_number_does_not_keep_it_alive() -> None:
    mark = own_mark()
    assert not has_ended(mark)
    place, _, started = mark.rpartition("/")
    assert has_ended(f"{place}/{int(started) - 1}")


@pytest.mark.parametrize("part", [0, 1])
def test_nothing_is_known_of_a_process_of_another_machine_or_container(part: int) -> None:
    parts = own_mark().split("/")
    parts[part] += "0"
    parts[3] = "1"
    assert not has_ended("/".join(parts))


def test_a_number_that_is_none_says_nothing() -> None:
    place = "/".join(own_mark().split("/")[:2])
    assert not any(has_ended(f"{place}/{number}/1") for number in ("", "0", "-1", "x", "9" * 5000))


@pytest.mark.parametrize("mark", ["", "a", "a/1/2/3", "a/1/2/3/4", "///", "\x00/1/x/3"])
def test_any_text_is_read(mark: str) -> None:
    assert not has_ended(mark)
