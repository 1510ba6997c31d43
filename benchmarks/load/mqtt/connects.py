"""Logins beside each other: ``python -m benchmarks.load.mqtt.connects --before DIR --after DIR``.

The processor time that a broker takes for a client that connects, logs in and disconnects, over MQTT and AMQP, of two
checkouts of the gateway and of the peers that are installed. All run at the same time and take turns. Mosquitto has no
log (``mosquitto.SETTINGS``), so the second checkout runs without its two lines for each client, too.
"""

import argparse
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.load.host import describe
from benchmarks.load.mqtt import wire
from benchmarks.load.peers import PEERS, SUBJECT, Peer
from benchmarks.load.processes import cpu_seconds
from benchmarks.load.running import Broker
from benchmarks.load.tables import table
from benchmarks.load.versions import AFTER, BEFORE, Checkout
from benchmarks.load.workloads import AMQP, MQTT

#: Clients that connect at the same time, in turns of the generator.
TOGETHER: Final = 20

#: Clients before the first measurement.
WARM_UP: Final = 200

#: Time for a broker to finish its work for clients that have left.
REST_S: Final = 0.3

#: An AMQP client's part of the login, and the end of the broker's answer to each step.
_HEADER: Final = b"AMQP\x00\x00\x09\x01"
_FRAME_END: Final = b"\xce"


def _method(arguments: bytes) -> bytes:
    return b"\x01\x00\x00" + len(arguments).to_bytes(4, "big") + arguments + _FRAME_END


_START_OK: Final = _method(b"\x00\x0a\x00\x0b" + bytes(4) + b"\x05PLAIN\x00\x00\x00\x0c\x00guest\x00guest\x05en_US")
_TUNE_OK_AND_OPEN: Final = _method(b"\x00\x0a\x00\x1f\x07\xff\x00\x02" + bytes(4)) + _method(
    b"\x00\x0a\x00\x28\x01/\0\0"
)
_CLOSE: Final = _method(b"\x00\x0a\x00\x32\x00\xc8\x00\x00\x00\x00\x00")
_STEPS: Final = ((_HEADER, b"\x00\x0a\x00\x0a"), (_START_OK, b"\x00\x0a\x00\x1e"),
                 (_TUNE_OK_AND_OPEN, b"\x00\x0a\x00\x29"), (_CLOSE, b"\x00\x0a\x00\x33"))  # fmt: skip


def mqtt_logins(port: int, first: int) -> None:
    """Connect some clients of MQTT 3.1.1 with clean sessions, and disconnect them."""
    clients = _connected(port)
    for number, client in enumerate(clients, first):
        client.sendall(wire.connect(f"connects-{number}", is_clean=True))
    for client in clients:
        answer = client.recv(64)
        if answer != b"\x20\x02\x00\x00":
            raise ConnectionError(f"CONNECT was answered by {answer.hex()}")
        client.sendall(b"\xe0\x00")
    for client in clients:
        client.close()


def amqp_logins(port: int, first: int) -> None:
    """Connect some clients of AMQP, without channels, and close their connections."""
    clients = _connected(port)
    for request, expected in _STEPS:
        for client in clients:
            client.sendall(request)
        for client in clients:
            answer = b""
            while expected not in answer or not answer.endswith(_FRAME_END):
                some = client.recv(4096)
                if not some:
                    raise ConnectionError("the broker closed a connection during its login")
                answer += some
    for client in clients:
        client.close()


LOGINS: Final[Sequence[tuple[str, Callable[[int, int], None]]]] = ((MQTT, mqtt_logins), (AMQP, amqp_logins))


def _connected(port: int) -> list[socket.socket]:
    clients = [socket.create_connection(("127.0.0.1", port), timeout=60.0) for _ in range(TOGETHER)]
    for client in clients:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return clients


def measure(broker: Broker, protocol: str, login: Callable[[int, int], None], count: int) -> float:
    """Return the microseconds of processor time of the broker for one of ``count`` logins."""
    before_s = cpu_seconds(broker.pid)
    for first in range(0, count, TOGETHER):
        login(broker.ports[protocol], first)
    time.sleep(REST_S)
    return (cpu_seconds(broker.pid) - before_s) / count * 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all brokers and print the table."""
    options = _options().parse_args(arguments)
    checkouts = [
        Checkout(BEFORE, options.before).peer,
        Checkout(AFTER, options.after).peer,
        Checkout(f"{AFTER}, no log", options.after, {"log.level": "warning"}).peer,
    ]
    peers = [*checkouts, *(peer for peer in PEERS if peer is not SUBJECT and peer.absence() is None)]
    times: dict[tuple[str, str], list[float]] = {}
    with ExitStack() as stack:
        brokers = [(peer, _run(stack, peer, options.directory)) for peer in peers]
        for repetition in range(options.repetitions + 1):
            for protocol, login in LOGINS:
                for peer, broker in brokers:
                    if protocol in peer.protocols:
                        us = measure(broker, protocol, login, options.logins if repetition else WARM_UP)
                        if repetition:
                            times.setdefault((protocol, peer.name), []).append(us)
        products = " ".join(f"{peer.name} is {broker.product}." for peer, broker in brokers)
    rows = [("login", "broker", "CPU µs, median", "least")]
    rows += [(protocol, name, f"{median(us):.0f}", f"{min(us):.0f}") for (protocol, name), us in times.items()]
    print(f"Machine: {describe(options.directory)}.\n\n{products}\n")
    print("\n".join(table(rows)))


def _run(stack: ExitStack, peer: Peer, directory: Path) -> Broker:
    """Run a broker until the stack closes."""
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=directory)))
    return stack.enter_context(peer.launch(place))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.mqtt.connects", description="The cost of logins.")
    parser.add_argument("--before", type=Path, required=True, metavar="DIR", help="the checkout to compare with")
    parser.add_argument("--after", type=Path, required=True, metavar="DIR", help="the checkout in question")
    parser.add_argument("--logins", type=int, default=1000, help="logins of one run (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()), help="data directory of the brokers"
    )
    return parser


if __name__ == "__main__":
    main()
