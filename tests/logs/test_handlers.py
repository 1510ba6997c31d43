"""Lines that cannot be written are dropped and counted, without other effects."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.logs.handlers import DroppingFile, DroppingHandler


class Disk:
    """A stream that is full at times."""

    def __init__(self) -> None:
        self.is_full = False
        self.text = ""

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("tests.dropping")
    logger.propagate = False
    yield logger
    logger.handlers.clear()


def test_lines_lost_on_a_full_disk_are_counted_and_reported_once(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = Disk()
    logger.addHandler(DroppingHandler(disk))
    logger.error("one")
    disk.is_full = True
    for _ in range(50):
        logger.error("lost")
    disk.is_full = False
    logger.error("two")
    logger.error("three")
    assert disk.text.splitlines() == ["one", "50 log lines could not be written and were dropped", "two", "three"]
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_reopened_raises_no_error(logger: logging.Logger, tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    logger.addHandler(DroppingFile(directory / "own.log"))
    logger.error("one")
    directory.rename(tmp_path / "moved")
    logger.error("lost")
    directory.mkdir()
    logger.error("two")
    assert (directory / "own.log").read_text().splitlines() == [
        "1 log lines could not be written and were dropped",
        "two",
    ]
