"""The valid files of an archive's directory, by its manifest."""

import json
from pathlib import Path

import pytest

from gateway_spark.manifest import MANIFEST, append, files_in, is_whole, lines_of

WHOLE = b"PAR1" + b"footer.." + (8).to_bytes(4, "little") + b"PAR1"


def put(directory: Path, name: str, content: bytes = WHOLE, *, listed: bool = True) -> None:
    (directory / name).write_bytes(content)
    if listed:
        append(directory, {"file": name, "bytes": len(content), "rows": 1})


def names(directory: Path) -> list[str]:
    return [file.path.name for file in files_in(directory)]


def test_without_a_manifest_all_complete_files_are_valid(tmp_path: Path) -> None:
    for name, content in (("a.parquet", WHOLE), ("b.parquet", WHOLE[:-1]), ("c.parquet", b""), ("d.csv", WHOLE)):
        put(tmp_path, name, content, listed=False)
    assert names(tmp_path) == ["a.parquet"]


def test_with_a_manifest_only_listed_files_are_valid(tmp_path: Path) -> None:
    put(tmp_path, "b.parquet")
    put(tmp_path, "a.parquet", listed=False)
    put(tmp_path, "foreign.parquet", b"not ours", listed=False)
    assert names(tmp_path) == ["b.parquet"]


def test_a_torn_resized_or_missing_file_is_not_valid(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet", "c.parquet", "d.parquet"):
        put(tmp_path, name)
    (tmp_path / "a.parquet").write_bytes(WHOLE[:-1])
    (tmp_path / "b.parquet").write_bytes(b"PAR1" + WHOLE)
    (tmp_path / "c.parquet").unlink()
    assert names(tmp_path) == ["d.parquet"]


def test_one_line_replaces_files_by_another(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet")
    put(tmp_path, "b.parquet")
    put(tmp_path, "ab.parquet", listed=False)
    assert names(tmp_path) == ["a.parquet", "b.parquet"]
    append(tmp_path, {"file": "ab.parquet", "bytes": len(WHOLE), "replaces": ["a.parquet", "b.parquet"]})
    assert names(tmp_path) == ["ab.parquet"]


def test_the_later_of_two_lines_for_a_file_applies(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", WHOLE[:-1])
    assert names(tmp_path) == []
    put(tmp_path, "a.parquet")
    (file,) = files_in(tmp_path)
    assert (file.size_bytes, file.rows) == (len(WHOLE), 1)


@pytest.mark.parametrize("torn", ['{"file": "b.par', "\x00\x00", "[]", '{"other": 1}', '{"file": "../a.parquet"}', "7"])
def test_an_invalid_line_is_skipped(tmp_path: Path, torn: str) -> None:
    put(tmp_path, "a.parquet")
    with (tmp_path / MANIFEST).open("a") as manifest:
        manifest.write(torn)
    put(tmp_path, "b.parquet")
    assert names(tmp_path) == ["a.parquet", "b.parquet"]
    assert json.loads((tmp_path / MANIFEST).read_text().splitlines()[-1])["file"] == "b.parquet"


def test_a_manifest_truncated_anywhere_lists_no_other_file(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet")
    put(tmp_path, "b.parquet")
    written = (tmp_path / MANIFEST).read_bytes()
    for cut in range(len(written)):
        (tmp_path / MANIFEST).write_bytes(written[:cut])
        assert set(names(tmp_path)) <= {"a.parquet", "b.parquet"}
        assert len(lines_of(tmp_path)) == len(names(tmp_path))


def test_a_footer_longer_than_the_file_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(WHOLE)
    assert is_whole(path)
    path.write_bytes(b"PAR1" + (8).to_bytes(4, "little") + b"PAR1")
    assert not is_whole(path)
    assert not is_whole(tmp_path / "absent")
