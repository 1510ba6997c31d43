"""Records the corpus anew from real clients: ``make fuzz-corpus ARGS="--only mqtt"``.

It needs the programs that ``tests/interop/install-tools.sh`` installs. Each client talks to a gateway through a relay;
``tests/fuzz/corpus/PROTOCOL/CLIENT.txt`` gets one frame of each shape.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import pika

from tests.fuzz.decoders.corpus import CORPUS, TO_BROKER, written
from tests.fuzz.recording.clients import CLIENTS, HOST, run_with_limit
from tests.fuzz.recording.cutting import frames_in, of_each_shape, whole
from tests.fuzz.recording.records import records_in
from tests.fuzz.recording.relay import Relay
from tests.running import Gateway, gateway_in


def main() -> int:
    """Record the chosen protocols; return 0 if every client ended well."""
    parser = argparse.ArgumentParser("make fuzz-corpus", description=__doc__)
    parser.add_argument("--only", action="append", choices=[*CLIENTS, "store"], help="record this; may be repeated")
    wanted = parser.parse_args().only or [*CLIENTS, "store"]
    is_well = True
    with tempfile.TemporaryDirectory() as directory, gateway_in(Path(directory)) as gateway:
        for protocol in CLIENTS:
            if protocol in wanted:
                is_well = _recorded(gateway, protocol) and is_well
        if "store" in wanted:
            _fill(gateway.addresses["amqp"][1])
            gateway.stop()
            _write("store", "records", list(records_in(gateway.data)))
            gateway.start()
    return 0 if is_well else 1


def _recorded(gateway: Gateway, protocol: str) -> bool:
    """Record all clients of a protocol; return whether all of them ended well."""
    is_well = True
    listener, clients = CLIENTS[protocol]
    for name, run in clients.items():
        with Relay(gateway.addresses[listener]) as relay:
            fault = run_with_limit(run, relay.port)
            conversations = [list(each) for each in relay.conversations]
        if fault:
            print(f"{protocol} {name}: {fault}", file=sys.stderr)
            is_well = False
        if protocol == "websocket":
            _write(protocol, name, [frame for each in conversations for frame in whole(each)])
        else:
            frames = (frame for each in conversations for frame in frames_in(protocol, each))
            _write(protocol, name, list(of_each_shape(protocol, frames)))
    return is_well


def _fill(port: int) -> None:
    """Leave messages of several kinds in queues and a stream."""
    with pika.BlockingConnection(pika.ConnectionParameters(HOST, port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True, arguments={"x-max-priority": 5})
        channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
        for number in range(5):
            headers = {"number": number, "x-stream-filter-value": "a"}
            properties = pika.BasicProperties(headers=headers, delivery_mode=2, priority=number, expiration="600000")
            for queue in ("kept", "stream"):
                channel.basic_publish("", queue, b"body " * number, properties)


def _write(protocol: str, name: str, frames: list[tuple[str, bytes]]) -> None:
    folder = CORPUS / protocol
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(written(frames), encoding="ascii")
    sent = sum(direction == TO_BROKER for direction, _ in frames)
    size = sum(len(frame) for _, frame in frames)
    print(f"{protocol}/{name}: {sent} frames to the broker, {len(frames) - sent} to the client, {size:,} bytes")


if __name__ == "__main__":
    sys.exit(main())
