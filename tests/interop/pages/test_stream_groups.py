"""The group of docs/streams.md: three processes of its program share a super stream, and one of them is killed."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.broker import Broker
from tests.interop.pages.blocks import ROOT, blocks
from tests.waiting import wait_until

PROGRAM: Final = "group.py"

#: Processes of the group, and messages, at least one for each partition.
PROCESSES: Final = 3
MESSAGES: Final = 60

TIMEOUT_S: Final = 60


class Process:
    """One process of the group, with a file of what it got: partition, offset and body in each line."""

    def __init__(self, program: Path, output: Path) -> None:
        self._output = output
        with output.open("wb") as file:
            self._child = subprocess.Popen([sys.executable, program], stdout=file)

    @property
    def lines(self) -> list[str]:
        """The complete lines, without the first one."""
        return self._output.read_text().rpartition("\n")[0].split("\n")[1:]

    @property
    def is_ready(self) -> bool:
        return self._output.read_text().startswith("waiting\n")

    def kill(self) -> None:
        self._child.kill()
        self._child.wait(TIMEOUT_S)


@contextmanager
def group(program: Path) -> Iterator[list[Process]]:
    """Run the processes within the block; each begins when the one before it consumes."""
    processes: list[Process] = []
    try:
        for number in range(PROCESSES):
            processes.append(Process(program, program.parent / f"output-{number}"))
            wait_until(lambda: processes[-1].is_ready, "a process does not consume", timeout_s=TIMEOUT_S)
        yield processes
    finally:
        for process in processes:
            process.kill()


def partitions_of(lines: Iterable[str]) -> set[str]:
    return {line.split()[0] for line in lines}


def publish(channel: BlockingChannel, begin: int) -> None:
    """Publish messages with different keys, in all partitions."""
    for number in range(begin, begin + MESSAGES):
        channel.basic_publish("invoices", f"key {number}", f"{number}".encode())


def test_a_group_goes_on_when_one_of_its_processes_is_killed(broker: Broker, tmp_path: Path) -> None:
    """Three processes read a partition each, and every message once; then two of them read all partitions."""
    (text,) = (block.text for block in blocks(ROOT / "docs" / "streams.md") if block.name == PROGRAM)
    program = tmp_path / PROGRAM
    program.write_text(text.replace("127.0.0.1:5672", f"{broker.host}:{broker.port}"))
    parameters = pika.ConnectionParameters(broker.host, broker.port)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.exchange_declare("invoices", "x-super-stream", durable=True, arguments={"x-super-stream": True})
        for number in range(3):
            stream = f"invoices-{number}"
            channel.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
            channel.queue_bind(stream, "invoices", str(number), {"x-stream-partition-order": number})
        with group(program) as processes:
            publish(channel, 0)
            wait_until(
                lambda: sum(len(process.lines) for process in processes) >= MESSAGES,
                lambda: str([process.lines for process in processes]),
                timeout_s=TIMEOUT_S,
            )
            found = [partitions_of(process.lines) for process in processes]
            assert sorted(found, key=sorted) == [{"invoices-0"}, {"invoices-1"}, {"invoices-2"}]
            killed = processes[1]
            killed.kill()
            before = {process: len(process.lines) for process in processes}
            publish(channel, MESSAGES)
            left = [process for process in processes if process is not killed]

            def read_again() -> list[str]:
                """Return what the others got since: perhaps what was not stored yet of the killed one's, too."""
                return [line for process in left for line in process.lines[before[process] :]]

            later = {str(number) for number in range(MESSAGES, 2 * MESSAGES)}
            wait_until(
                lambda: later <= {line.split()[2] for line in read_again()},
                lambda: str(read_again()),
                timeout_s=TIMEOUT_S,
            )
            assert partitions_of(read_again()) == {"invoices-0", "invoices-1", "invoices-2"}
            counts = Counter(line.split()[2] for line in read_again())
            assert all(counts[body] == 1 for body in later)
        for number in range(3):
            channel.queue_delete(f"invoices-{number}")
        channel.exchange_delete("invoices")
