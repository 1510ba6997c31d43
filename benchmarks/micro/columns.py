"""CPU of the conversion of messages to columns, for headers that repeat and for those that do not.

python -m benchmarks.micro.columns
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gateway.columnar.encoding.direct_rows import DirectReader
from gateway.columnar.encoding.formats import envelope_reader
from gateway.columnar.encoding.messages import MessageColumns
from gateway.kernel.messages.chunks import encode_chunk
from gateway.kernel.messages.contents import ContentWriter
from gateway.kernel.messages.message import Message, Properties
from gateway_amqp.header import AMQP
from gateway_amqp.properties import encode_properties
from gateway_mqtt.translation.header import mqtt_header

MESSAGES, OF_CHUNK, REPETITIONS = 100_000, 500, 4
BODY: Final = b"x" * 100
AT_MS: Final = 1_700_000_000_000


def _amqp(properties: Properties) -> Message:
    return Message("exchange", "key", AMQP.header(encode_properties(properties)), BODY)


#: The message with a number, by the description of all of them.
KINDS: Final[Mapping[str, Callable[[int], Message]]] = {
    "AMQP, a correlation-id of its own for each": lambda number: _amqp(
        Properties(delivery_mode=2, correlation_id=f"{number:012}")
    ),
    "AMQP, a message-id of its own, equal headers": lambda number: _amqp(
        Properties(delivery_mode=2, message_id=f"{number:012}", headers={"a": "b", "n": 5})
    ),
    "AMQP, a message-id and a trace header of its own": lambda number: _amqp(
        Properties(
            delivery_mode=2, message_id=f"{number:012}", headers={"traceparent": f"00-{number:032}", "n": number}
        )
    ),
    "AMQP, equal headers": lambda number: _amqp(Properties(delivery_mode=2)),
    "MQTT, a client and a topic of its own for each": lambda number: Message(
        "amq.topic", f"devices.{number}.t", mqtt_header(1, False, False, f"device-{number}", b""), BODY
    ),
}


def main() -> None:
    """Print the CPU of a message of each kind."""
    for name, message in KINDS.items():
        chunks = list(_chunks(message))
        print(f"{name}: {min(_cpu_us(chunks) for _ in range(REPETITIONS)):.2f} µs a message")


def _chunks(message: Callable[[int], Message]) -> Iterator[bytes]:
    writer = ContentWriter()
    for first in range(0, MESSAGES, OF_CHUNK):
        numbers = range(first, first + OF_CHUNK)
        yield encode_chunk(first, [(AT_MS + number, b"", writer.encode(message(number))) for number in numbers])


def _cpu_us(chunks: list[bytes]) -> float:
    columns, start = MessageColumns(envelope_reader(), DirectReader()), time.process_time()
    rows = sum(piece.batch.num_rows for piece in columns.pieces(chunks, 0, MESSAGES, vhost="/", queue="q"))
    return (time.process_time() - start) * 1e6 / rows


if __name__ == "__main__":
    main()
