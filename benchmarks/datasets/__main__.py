"""Publish real data by three protocols, and kill each process of the pipeline meanwhile; compare every row.

python -m benchmarks.datasets [--rows 50000] [--kills 14]

A broker with an archive, a standalone Spark cluster with two workers, and a driver run on this machine. Killed are, in
turns, with SIGKILL, each after a further batch: an executor alone, the broker, its worker for columns, the driver with
its Java, a worker of Spark, its master, and the Python of an executor.
"""

import argparse
import json
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pandas
import pyarrow.parquet as pq

import gateway_arrow
from benchmarks.datasets.data import DATASETS, lines
from benchmarks.datasets.publishing import publish
from benchmarks.datasets.rig import HOST, Rig, say, spark_cluster, until
from gateway_spark.archive import days
from gateway_spark.manifest import files_in

#: Messages of a batch of a publisher.
AT_ONCE: Final = 1000


# The comparison


def bodies_in(rig: Rig, stream: str) -> list[bytes]:
    """Return the bodies of a stream, in its order."""
    return list(gateway_arrow.read(rig.url, stream, columns=["body"]).read_all()["body"].to_pylist())


def committed(place: Path) -> list[str]:
    """Return the files of a query, as Spark reads them: those that a killed task has left are not in its log."""
    logs = (place / "_spark_metadata").glob("[0-9]*")
    entries = [json.loads(line) for log in logs for line in log.read_text().splitlines()[1:]]
    return sorted({entry["path"].removeprefix("file://") for entry in entries})


def compare(rig: Rig, name: str, frame: Any, archived: Counter[bytes]) -> Iterator[str]:
    """Yield what is wrong with the results of a data set: nothing, if each is equal to pandas."""
    published = lines(frame)
    stream = bodies_in(rig, name)
    if set(stream) != set(published):
        yield f"{name}: the stream has other messages than were published"
    rows = pq.read_table(committed(rig.directory / name / "rows")).to_pandas().sort_values("offset")
    if rows["offset"].to_list() != list(range(len(stream))):
        yield f"{name}: the files of the query have {len(rows)} rows, not each of {len(stream)} messages once"
    if rows["body"].to_list() != stream:
        yield f"{name}: the files of the query have other bodies than the stream"
    if Counter(bodies_in(rig, f"{name}.copy")) != Counter(stream):
        yield f"{name}: the sink has published other messages than the stream has"
    if any(archived[body] != count for body, count in Counter(stream).items()):
        yield f"{name}: the archive has other messages than the stream"
    once = rows.drop_duplicates("body")["body"]
    found = pandas.read_json(BytesIO(b"\n".join(once)), lines=True).set_index("row").sort_index()
    expected = pandas.read_json(BytesIO(b"\n".join(published)), lines=True).set_index("row")
    if not found.equals(expected):
        yield f"{name}: the rows differ from those of pandas"
    counts = ", ".join(f"{count} by {protocol}" for protocol, count in rows["protocol"].value_counts().items())
    say(f"{name}: {len(published)} rows, {len(stream)} messages ({counts})")


def archived_in(rig: Rig, count: int) -> Counter[bytes]:
    """Return the bodies of the archive, once it has as many messages."""
    place = rig.directory / "data" / "archive"

    def files() -> list[Any]:
        return [file for day in days(place) for file in files_in(day)]

    until(lambda: sum(file.rows or 0 for file in files()) >= count, "the archive is not complete")
    return Counter(body for file in files() for body in pq.read_table(file.path, columns=["body"])["body"].to_pylist())


def main() -> int:
    """Run it; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.datasets", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, help="rows of each data set (default: all)")
    parser.add_argument("--kills", type=int, default=14, help="kills, of the processes in turns (default: %(default)s)")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # ends the processes, too
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    frames = {name: load()[: options.rows] for name, load in DATASETS.items()}
    with tempfile.TemporaryDirectory(prefix="gateway-datasets-") as place:
        directory = Path(place)
        with spark_cluster(directory / "spark") as spark, Rig(directory, spark) as rig:
            wrong = list(run(rig, frames, options.kills))
    for each in wrong:
        say(f"WRONG: {each}")
    if not wrong:
        say("all rows are equal to those of pandas, and each message is once in files, copies and archive")
    return 1 if wrong else 0


def run(rig: Rig, frames: dict[str, Any], kills: int) -> Iterator[str]:
    """Publish, kill, and compare; yield what is wrong."""
    rig.broker.start()
    until(rig.is_ready, "the broker does not start; see broker.log")
    rig.prepare(frames)
    rig.driver.start()
    again: list[int] = []
    publishers = [
        threading.Thread(target=lambda n=name, f=frame: again.append(publish(HOST, rig.ports, n, lines(f), AT_ONCE)))
        for name, frame in frames.items()
    ]
    until(rig.has_executors, "no executor starts; see driver-no.log")
    for each in publishers:
        each.start()
    wanted = [rig.kill_executor, rig.kill_broker, rig.kill_worker, rig.kill_driver]
    wanted += [rig.kill_spark_worker, rig.kill_spark_master, rig.kill_python]
    for number in range(kills):
        if not rig.wait_for_a_batch():
            break
        kill = wanted[number % len(wanted)]
        until(kill, f"{kill.__name__}: there is no such process")
    for each in publishers:
        each.join()
    rig.end_driver()
    rig.run_to_the_end()
    say("killed: " + ", ".join(f"{count} x {name}" for name, count in sorted(rig.killed.items())))
    say(f"published again, because no answer had come: {sum(again)}")
    archived = archived_in(rig, sum(len(bodies_in(rig, name)) for name in frames))
    for name, frame in frames.items():
        yield from compare(rig, name, frame, archived)


if __name__ == "__main__":
    sys.exit(main())
