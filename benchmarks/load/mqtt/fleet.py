"""Many idle devices on one machine: ``python -m benchmarks.load.mqtt.fleet --connections 100000 --brokers 6``.

The number of open files of a process is limited, so the devices are spread over several brokers, and over as many
processes of clients. They use several addresses on loopback, and subscribe to one topic. After a rest one message is
sent to all of them.
"""

import argparse
import multiprocessing
import select
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from benchmarks.load.gateway import launch
from benchmarks.load.host import describe
from benchmarks.load.mqtt import wire
from benchmarks.load.mqtt.client import Client
from benchmarks.load.processes import cpu_seconds, raise_descriptor_limit, resident_bytes
from benchmarks.load.running import Broker
from benchmarks.load.tables import table
from benchmarks.load.workloads import MQTT

TOPIC: Final = "fleet/all"
MESSAGE: Final = wire.publish(TOPIC, b"x" * 32, 0)
SUBACK: Final = wire.packet(wire.SUBACK, b"\x00\x01\x00")

#: The connections from one address: it has ports for several times as many.
_OF_ADDRESS: Final = 5_000

#: Time for the work after the logins to end, and the time in which the idle processor time is measured.
_SETTLE_S: Final = 15.0
_IDLE_S: Final = 30.0

#: Open files of a process that are not connections.
_OTHER_FILES: Final = 300


class Devices:
    """The devices of one broker, in a process of their own."""

    def __init__(self, number: int, port: int, count: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_devices, args=(theirs, number, port, count), daemon=True)
        self._process.start()
        theirs.close()

    def wait(self) -> None:
        """Wait until all of them are connected, or have the message. :raises EOFError: if one of them failed."""
        self._pipe.recv()

    def close(self) -> None:
        """End them."""
        self._process.kill()
        self._process.join()


def _devices(pipe: Connection, number: int, port: int, count: int) -> None:
    """Connect the devices of one broker, report it, and report again when each has received the message."""
    devices = [_device(number, each, port) for each in range(count)]
    pipe.send(None)
    with select.epoll() as poll:
        waiting = {device.fileno(): device for device in devices}
        for descriptor in waiting:
            poll.register(descriptor, select.EPOLLIN)
        while waiting:
            for descriptor, _ in poll.poll():
                if waiting[descriptor].recv(len(MESSAGE), socket.MSG_WAITALL) != MESSAGE:
                    return  # the pipe ends
                poll.unregister(descriptor)
                del waiting[descriptor]
    pipe.send(None)
    pipe.recv()


def _device(number: int, each: int, port: int) -> socket.socket:
    """Connect a device that subscribes to the topic."""
    source = f"127.1.{number}.{1 + each // _OF_ADDRESS}"
    device = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
    device.sendall(wire.connect(f"device-{number}-{each}", is_clean=True) + wire.subscribe(TOPIC, 0))
    answer = device.recv(wire.CONNACK_BYTES + len(SUBACK), socket.MSG_WAITALL)
    if answer != b"\x20\x02\x00\x00" + SUBACK:
        raise ConnectionError(f"CONNECT and SUBSCRIBE were answered by {answer.hex()}")
    return device


@contextmanager
def fleet(brokers: Sequence[Broker], connections: int) -> Iterator[list[Devices]]:
    """Connect the devices to the brokers, and end them."""
    with ExitStack() as stack:
        devices: list[Devices] = []
        for number, broker in enumerate(brokers):
            share = connections // len(brokers) + (number < connections % len(brokers))
            devices.append(Devices(number, broker.ports[MQTT], share))
            stack.callback(devices[-1].close)
        for each in devices:
            each.wait()
        yield devices


def measure(brokers: Sequence[Broker], connections: int) -> list[tuple[str, str]]:
    """Connect, rest, and send one message to all; return the rows of the report."""
    publishers = [Client(broker.ports[MQTT], "publisher") for broker in brokers]
    memory, available = _total(resident_bytes, brokers), _available_bytes()
    used_s, since_s = _total(cpu_seconds, brokers), time.monotonic()
    with fleet(brokers, connections) as devices:
        took_s, login_s = time.monotonic() - since_s, _total(cpu_seconds, brokers) - used_s
        time.sleep(_SETTLE_S)
        each_bytes = (_total(resident_bytes, brokers) - memory) / connections
        machine_bytes = (available - _available_bytes()) / connections
        used_s = _total(cpu_seconds, brokers)
        time.sleep(_IDLE_S)
        idle = (_total(cpu_seconds, brokers) - used_s) / _IDLE_S / len(brokers)
        used_s, since_s = _total(cpu_seconds, brokers), time.monotonic()
        for publisher in publishers:
            publisher.send(MESSAGE)
        for each in devices:
            each.wait()
        sent_s, sending_s = time.monotonic() - since_s, _total(cpu_seconds, brokers) - used_s
    return [
        ("measured", f"{connections:,} devices, {len(brokers)} brokers"),
        ("logins with a subscription, a second, in all", f"{connections / took_s:,.0f}"),
        ("CPU of a broker for each of them, µs", f"{login_s / connections * 1e6:.0f}"),
        ("resident memory of a broker for each device, KiB", f"{each_bytes / 1024:.1f}"),
        ("memory of the machine for each, with the system's and the client's half, KiB", f"{machine_bytes / 1024:.1f}"),
        ("CPU of a broker while they are idle, % of a core", f"{idle * 100:.2f}"),
        ("one message to all of them: seconds until the last has it", f"{sent_s:.2f}"),
        ("CPU of a broker for each of these deliveries, µs", f"{sending_s / connections * 1e6:.1f}"),
    ]


def _total(measured: Callable[[int], float], brokers: Sequence[Broker]) -> float:
    return sum(measured(broker.pid) for broker in brokers)


def _available_bytes() -> int:
    """Return the memory of the machine that is available."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return int(kib) * 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.mqtt.fleet", description="Many idle devices.")
    parser.add_argument("--connections", type=int, default=100_000, help="devices in all (default: %(default)s)")
    parser.add_argument("--brokers", type=int, default=6, help="brokers (default: %(default)s)")
    place = Path(tempfile.gettempdir())
    parser.add_argument("--directory", type=Path, default=place, help="data directory of the brokers")
    options = parser.parse_args(arguments)
    most = raise_descriptor_limit(options.connections) - _OTHER_FILES
    if options.connections > most * options.brokers:
        parser.error(f"a process has open files for {most} connections: use more brokers")
    with ExitStack() as stack:
        places = [
            Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.directory)))
            for _ in range(options.brokers)
        ]
        brokers = [stack.enter_context(launch(each)) for each in places]
        rows = measure(brokers, options.connections)
    print(f"Machine: {describe(options.directory)}. {brokers[0].product}\n")
    print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
