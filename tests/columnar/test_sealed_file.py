"""The file of a sealed segment: an Arrow stream from which any range can be copied by its index."""

from pathlib import Path

import pytest

from gateway.columnar.encoding.arrow_stream import arrow_stream, write_sealed
from gateway.columnar.encoding.rows import MOST_ROWS
from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.tables.sealed import END_OF_STREAM, SealedBatch, SealedFile
from tests.columnar.streams import chunk, message, pieces, read_stream

FIRST = 1000
COUNT = 3 * MOST_ROWS + 10


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streams") / f"{FIRST:020}.arrow"
    write_sealed(path, pieces([chunk([message()] * COUNT, first=FIRST)]))
    return path


def copied(file: SealedFile, batches: tuple[SealedBatch, ...]) -> bytes:
    """Return the bytes that a reader is sent."""
    data = file.path.read_bytes()
    slices = [data[batch.position : batch.position + batch.size] for batch in batches]
    return b"".join([data[: file.schema_size], *slices, END_OF_STREAM])


def test_the_whole_file_is_a_valid_arrow_stream(path: Path) -> None:
    assert read_stream(path.read_bytes())["offset"].to_pylist() == list(range(FIRST, FIRST + COUNT))


@pytest.mark.parametrize(
    ("first", "end", "batches"),
    [
        (FIRST, FIRST + COUNT, [0, 1, 2, 3]),
        (FIRST, FIRST + 1, [0]),
        (FIRST + MOST_ROWS - 1, FIRST + MOST_ROWS, [0]),
        (FIRST + MOST_ROWS, FIRST + MOST_ROWS + 1, [1]),
        (FIRST + MOST_ROWS - 1, FIRST + MOST_ROWS + 1, [0, 1]),
        (FIRST + COUNT - 1, FIRST + COUNT + 99, [3]),
        (0, FIRST, []),
        (FIRST + COUNT, FIRST + COUNT + 1, []),
        (FIRST + 5, FIRST + 5, [0]),
    ],
)
def test_the_batches_of_a_range_form_a_valid_stream(path: Path, first: int, end: int, batches: list[int]) -> None:
    file = SealedFile.read(path)
    assert file is not None
    chosen = file.batches_between(first, end)
    if first < end:
        assert list(chosen) == [file.batches[index] for index in batches]
    table = read_stream(copied(file, chosen))
    assert table.schema == MESSAGES
    wanted = set(range(first, end)) & set(range(FIRST, FIRST + COUNT))
    assert wanted <= set(table["offset"].to_pylist())


def test_the_index_has_the_end_of_the_rows(path: Path) -> None:
    file = SealedFile.read(path)
    assert file is not None
    assert file.end == FIRST + COUNT


def test_a_truncated_file_is_rejected(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    torn = tmp_path / "torn.arrow"
    for size in (0, 1, 7, 8, 100, len(data) // 2, len(data) - 1):
        torn.write_bytes(data[:size])
        assert SealedFile.read(torn) is None
    assert SealedFile.read(tmp_path / "missing.arrow") is None


@pytest.mark.parametrize("index", [b"", b"{}", b"[]", b"nonsense", b'{"schema":1,"batches":[[1,2]]}'])
def test_an_inconsistent_index_is_rejected(tmp_path: Path, index: bytes) -> None:
    foreign = tmp_path / "foreign.arrow"
    foreign.write_bytes(index + len(index).to_bytes(4) + b"GWAI")
    assert SealedFile.read(foreign) is None


def test_an_empty_stream_has_the_schema() -> None:
    assert read_stream(arrow_stream([])).schema == MESSAGES


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    def failing():  # type: ignore[no-untyped-def]
        yield from pieces([chunk([message()])])
        raise ValueError("torn")

    with pytest.raises(ValueError, match="torn"):
        write_sealed(tmp_path / "x.arrow", failing())
    assert list(tmp_path.iterdir()) == []
