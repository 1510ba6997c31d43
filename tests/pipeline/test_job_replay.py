"""The job ``replay``."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gateway_spark.jobs.replay import JOB, Pace
from gateway_spark.jobs.running import main
from tests.pipeline.archives import write_file
from tests.pipeline.fake_broker import FakeBroker, fake_broker
from tests.pipeline.staged import published

BODIES = [bytes([number, 255, 0]) for number in range(25)]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with fake_broker() as running:
        yield running


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    root = tmp_path / "archive"
    rows = [
        {
            "body": body,
            "routing_key": f"k.{number % 2}",
            "headers_json": json.dumps({"n": number}),
            "content_type": "x/y",
            "user_id": "a",
        }
        for number, body in enumerate(BODIES)
    ]
    write_file(root, rows)
    return root


def replay(broker: FakeBroker, archive: Path, *arguments: str) -> int:
    out = ["--out", str(archive.parent / "out")]
    return main(JOB, ["--archive", str(archive), "--url", broker.options()["url"], *out, *arguments])


def test_messages_are_published_in_order_with_their_headers_and_origin(
    spark: SparkSession, broker: FakeBroker, archive: Path
) -> None:
    assert replay(broker, archive, "--name", "again", "--batch-size", "10") == 0
    found = published(broker)
    assert [body for _, body in found] == BODIES
    head, _ = found[3]
    assert (head["exchange"], head["routing_key"]) == ("amq.topic", "k.1")
    assert json.loads(head["headers_json"]) == {"n": 3, "x-replayed-from": "readings/0/3"}
    assert head["properties"] == {"content_type": "x/y", "delivery_mode": 2}
    assert [commit["query"] for commit in broker.commits] == ["batch 0", "batch 1", "batch 2"]
    assert {commit["producer"] for commit in broker.commits} == {"replay again"}


def test_an_sql_condition_selects_the_messages(spark: SparkSession, broker: FakeBroker, archive: Path) -> None:
    assert replay(broker, archive, "--name", "odd", "--where", "routing_key = 'k.1'") == 0
    assert [body for _, body in published(broker)] == BODIES[1::2]


def test_a_dry_run_publishes_nothing_and_shows_the_selection(
    spark: SparkSession, broker: FakeBroker, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(broker, archive, "--dry-run", "--where", "routing_key = 'k.1'") == 0
    assert broker.requests == []
    assert "messages 12" in capsys.readouterr().out
    assert "k.1" in (archive.parent / "out" / "report.html").read_text()


def test_a_repeated_replay_with_the_same_name_publishes_nothing_twice(
    spark: SparkSession, broker: FakeBroker, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for told in ("published 25, published before 0", "published 0, published before 25"):
        assert replay(broker, archive, "--name", "again", "--batch-size", "10") == 0
        assert told in capsys.readouterr().out
    assert len(broker.commits) == 3


def test_an_interrupted_replay_is_completed_with_the_same_batches(
    spark: SparkSession, broker: FakeBroker, archive: Path
) -> None:
    """Even if the archive grew meanwhile, and the broker has a batch whose answer the job did not receive."""
    replay(broker, archive, "--name", "again", "--batch-size", "10")
    plan = archive.parent / "out" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"done": 1}))
    write_file(archive, [{"body": b"late"}], first=1000)
    assert replay(broker, archive, "--name", "again", "--batch-size", "10") == 0
    assert [commit["query"] for commit in broker.commits] == [f"batch {batch}" for batch in (0, 1, 2, 1, 2)]
    assert [body for _, body in published(broker)] == BODIES


def test_another_selection_needs_another_name(
    spark: SparkSession, broker: FakeBroker, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(broker, archive, "--name", "again") == 0
    assert replay(broker, archive, "--name", "again", "--where", "true") == 64
    assert "use another --name and --out" in capsys.readouterr().err


def replay_stream(broker: FakeBroker, out: Path) -> int:
    return main(JOB, ["--queue", "orders", "--url", broker.options()["url"], "--out", str(out), "--name", "again"])


def test_a_recreated_stream_is_another_selection(
    spark: SparkSession, broker: FakeBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.recreate("orders", 0, 3, "1-1")
    assert replay_stream(broker, tmp_path / "out") == 0
    assert replay_stream(broker, tmp_path / "elsewhere") == 0
    broker.recreate("orders", 0, 5, "2-1")
    assert replay_stream(broker, tmp_path / "out") == 64
    assert "orders/0 was declared again since" in capsys.readouterr().err
    assert replay_stream(broker, tmp_path / "third") == 0
    first, same, other = [commit["query"] for commit in broker.commits]
    assert first == same != other


def test_an_interrupted_replay_is_completed_although_its_stream_was_declared_again(
    spark: SparkSession, broker: FakeBroker, tmp_path: Path
) -> None:
    broker.recreate("orders", 0, 3, "1-1")
    assert replay_stream(broker, tmp_path / "out") == 0
    (first,) = [commit["query"] for commit in broker.commits]
    plan = tmp_path / "out" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"done": 0}))
    broker.recreate("orders", 0, 5, "2-1")
    assert replay_stream(broker, tmp_path / "out") == 0
    assert [commit["query"] for commit in broker.commits] == [first, first]


def test_messages_are_published_to_another_destination(spark: SparkSession, broker: FakeBroker, archive: Path) -> None:
    target = ["--to-exchange", "again", "--to-routing-key", "all", "--unroutable", "drop"]
    assert replay(broker, archive, "--name", "x", *target) == 0
    head, _ = published(broker)[0]
    assert not {"exchange", "routing_key"} & head.keys()
    (commit,) = broker.commits
    assert (commit["exchange"], commit["routing_key"], commit["unroutable"]) == ("again", "all", "drop")


def test_without_a_name_nothing_is_published(
    spark: SparkSession, broker: FakeBroker, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(broker, archive) == 64
    assert "--name is required" in capsys.readouterr().err
    assert broker.requests == []


def test_a_batch_has_at_least_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(JOB, ["--archive", "a", "--name", "x", "--batch-size", "0"])
    assert ended.value.code == 64
    assert "it must be a whole number from 1, not '0'" in capsys.readouterr().err


def test_a_replay_runs_once(spark: SparkSession, broker: FakeBroker, archive: Path) -> None:
    assert replay(broker, archive, "--name", "x", "--continuous") == 64


def test_a_rate_limits_publishing() -> None:
    clock = [100.0]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        clock[0] += seconds

    pace = Pace(50.0, lambda: clock[0], pause)
    for count in (100, 100, 50):
        pace.wait(count)
    clock[0] += 60
    pace.wait(10)
    assert pauses == [2.0, 2.0]


def test_without_a_rate_publishing_does_not_wait() -> None:
    pace = Pace(None, lambda: 0.0, lambda _: pytest.fail("it waited"))
    pace.wait(1_000_000)
    pace.wait(1_000_000)
