"""The measurements of the pipeline: what they leave out, and that they do not hide errors."""

from typing import Any, cast

import pytest

from benchmarks.load.management import Management
from benchmarks.pipeline.archiving import ArchiveState
from benchmarks.pipeline.visibility import delays_after
from tests.waiting import wait_until


def test_messages_of_the_start_of_a_query_are_left_out_by_the_time_of_sending() -> None:
    """Their number says nothing: the query sees only those that are sent after it has begun to read."""
    assert delays_after(15.0, [1.0, 14.9, 15.0, 16.0], [9.0, 8.0, 0.1, 0.2]) == [0.1, 0.2]
    with pytest.raises(RuntimeError, match="no message that was sent after its first 15 s"):
        delays_after(15.0, [1.0], [9.0])


def test_an_error_of_a_look_at_an_archive_is_raised() -> None:
    asked: list[str] = []

    class Broken:
        def ask(self, method: str, path: str, *rest: Any) -> bytes:
            asked.append(path)
            raise OSError("no broker")

    archive = ArchiveState(cast(Management, Broken()))
    with pytest.raises(OSError, match="no broker"), archive.watched():
        wait_until(lambda: asked)
