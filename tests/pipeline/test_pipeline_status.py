"""``gateway pipeline status``: from checkpoints and the broker, without Spark."""

import json
from pathlib import Path

import pytest

from gateway_spark.__main__ import main
from gateway_spark.errors import OptionError
from gateway_spark.offsets import Key, PartitionOffset
from gateway_spark.status import reached
from tests.pipeline.fake_broker import fake_broker


def checkpoint_in(directory: Path, *offsets: object, commits: int) -> Path:
    """Write a checkpoint as Spark does: a file for each batch, with a checksum file."""
    checkpoint = directory / "checkpoint"
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"1234"}')
    for batch, offset in enumerate(offsets):
        text = f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offset)}'
        (checkpoint / "offsets" / str(batch)).write_text(text)
        (checkpoint / "offsets" / f".{batch}.crc").write_text("")
    for batch in range(commits):
        (checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return checkpoint


OFFSETS = [{"orders": {"0": {"from": 0, "next": 10}}}, {"orders": {"0": 25, "1": {"from": 0, "next": 5}}}]


def test_the_position_is_that_of_the_last_complete_batch(tmp_path: Path) -> None:
    found = reached(checkpoint_in(tmp_path, *OFFSETS, commits=1))
    assert (found.query, found.planned, found.done) == ("1234", 1, 0)
    assert found.entry_by_key == {Key("orders", "0"): PartitionOffset(10, 0)}


def test_the_lag_is_the_number_of_unread_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = checkpoint_in(tmp_path, *OFFSETS, commits=2)
    with fake_broker() as broker:
        broker.declare_super("orders", (0, 100), (0, 5))
        assert main(["status", str(checkpoint), "--url", broker.options()["url"]]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{checkpoint}: query 1234, batch 1 done, 1 planned",
        "  orders/0: at 25, of 100: 75 to go",
        "  orders/1: at 5, of 5: 0 to go",
    ]


OF_FIRST_STREAM = {"orders": {"0": {"incarnation": "1-1", "from": 0, "next": 25}}}

SUCCESSORS = [
    ((10, 100), "1-1", "at 25, of 100: 75 to go"),
    ((40, 100), "1-1", "at 25, of 100: 75 to go, 15 of them deleted by retention"),
    ((0, 20), "1-1", "at 25, beyond the end of the stream, 20: it was declared again"),
    ((0, 500), "2-1", "at 25, of a stream that was deleted and declared again: 500 to go in the new one"),
]


@pytest.mark.parametrize(("bounds", "incarnation", "shown"), SUCCESSORS)
def test_a_successor_of_the_stream_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bounds: tuple[int, int], incarnation: str, shown: str
) -> None:
    checkpoint = checkpoint_in(tmp_path, OF_FIRST_STREAM, commits=1)
    with fake_broker() as broker:
        broker.recreate("orders", *bounds, incarnation)
        assert main(["status", str(checkpoint), "--url", broker.options()["url"]]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [f"  orders/0: {shown}"]


def test_a_deleted_stream_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = checkpoint_in(tmp_path, OF_FIRST_STREAM | {"other": {"0": 3}}, commits=1)
    with fake_broker() as broker:
        broker.declare("other", 0, 4)
        assert main(["status", str(checkpoint), "--url", broker.options()["url"]]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  orders/0: at 25, of a stream that was deleted",
        "  other/0: at 3, of 4: 1 to go",
    ]


def batch(query: str, number: int, state: str, reason: str | None = None) -> dict[str, object]:
    counts = {"rows": 50, "checked": 20, "published": 30}
    return {"query": query, "batch": number, "state": state, "reason": reason, **counts}


def test_the_batches_of_the_sink_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = checkpoint_in(tmp_path, OFFSETS[0], commits=1)
    with fake_broker() as broker:
        broker.declare("orders", 0, 10)
        broker.batches = [
            batch("other", 3, "publishing"),
            batch("1234", 0, "publishing"),
            batch("1234", 1, "held", "no exchange 'x' in vhost '/'"),
            batch("1234", 2, "checked"),
        ]
        assert main(["status", str(checkpoint), "--url", broker.options()["url"]]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "  sink, batch 0: 30 of 50 rows published",
        "  sink, batch 1: held after 30 of 50 rows: no exchange 'x' in vhost '/'",
        "  sink, batch 2: 20 of 50 rows checked",
    ]


@pytest.mark.parametrize("status", [401, 404])
def test_without_the_batches_the_lag_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int) -> None:
    """A user without the tag *monitoring*, and a broker before these batches."""
    checkpoint = checkpoint_in(tmp_path, OFFSETS[0], commits=1)
    with fake_broker() as broker:
        broker.declare("orders", 0, 10)
        broker.answer_to_batches = status
        assert main(["status", str(checkpoint), "--url", broker.options()["url"]]) == 0
    _, lag, batches = capsys.readouterr().out.splitlines()
    assert lag == "  orders/0: at 10, of 10: 0 to go"
    assert batches.startswith("  batches of its sink are not shown: ")


def test_the_password_may_be_in_the_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = checkpoint_in(tmp_path, *OFFSETS, commits=2)
    asked = ["status", str(checkpoint), "--url", "http://127.0.0.1:9", "--password-env", "NOT_THERE"]
    assert main(asked) == 64
    assert "the environment of the driver's workers has no NOT_THERE" in capsys.readouterr().err


def test_without_a_broker_only_the_position_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = checkpoint_in(tmp_path, *OFFSETS, commits=2)
    assert main(["status", str(checkpoint)]) == 0
    assert "  orders/0: at 25\n" in capsys.readouterr().out


def test_before_the_first_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(checkpoint_in(tmp_path, commits=0))]) == 0
    assert "batch none done, none planned" in capsys.readouterr().out


def test_offsets_of_other_sources_are_skipped(tmp_path: Path) -> None:
    found = reached(checkpoint_in(tmp_path, 7, "x", OFFSETS[0], commits=3))
    assert found.entry_by_key == {Key("orders", "0"): PartitionOffset(10, 0)}


def test_a_directory_that_is_not_a_checkpoint_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OptionError):
        reached(tmp_path)
    assert main(["status", str(tmp_path)]) == 64
    assert "is not a checkpoint of a streaming query" in capsys.readouterr().err
