"""Dead letters byte by byte: the field types of ``x-death``, and of headers that the publisher set."""

import struct

from gateway_amqp.header import AMQP
from gateway_amqp.properties import scan_properties
from gateway_amqp.splices import fields_of
from gateway_amqp.tables import sized
from tests.behaviour.scenario import AmqpClient, Scenario
from tests.protocols.amqp.frames import publish

HEADERS_ONLY = 0x2000

#: One field of each type that Python's values do not distinguish, as clients of other languages encode them.
FOREIGN = b"".join(
    [
        b"\x01ab" + b"\x05",
        b"\x01bB" + b"\x05",
        b"\x01cs" + struct.pack(">h", 5),
        b"\x01du" + struct.pack(">H", 5),
        b"\x01ei" + struct.pack(">I", 5),
        b"\x01fl" + struct.pack(">q", 5),
        b"\x01gf" + struct.pack(">f", 0.5),
        b"\x01hx" + sized(b"raw"),
        b"\x01iV",
    ]
)


def table_of(raw: bytes) -> bytes:
    table: bytes = scan_properties(raw)["headers"]
    return table


def raw_of_a_dead_letter(deaths: int = 1) -> bytes:
    """Publish a message with the foreign headers, let it be dead-lettered, and return the properties that a consumer
    receives.
    """
    scenario = Scenario(AmqpClient)
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    edge = scenario.client
    edge.peer.send(publish("", "q", b"m", raw=struct.pack(">H", HEADERS_ONLY) + sized(FOREIGN)))
    edge.peer.receive()
    for _ in range(deaths):
        scenario.reject("q")
    entry = scenario.vhost.queue("q").ready.peek()
    assert entry is not None
    return entry.message.header.raw


def test_headers_of_the_publisher_keep_their_bytes() -> None:
    assert table_of(raw_of_a_dead_letter())[4:].startswith(FOREIGN)


def test_an_x_death_entry_has_rabbitmqs_types() -> None:
    for deaths in (1, 2):
        raw = raw_of_a_dead_letter(deaths)
        (death,) = (field for field in fields_of(table_of(raw)) if field.name == b"x-death")
        assert death.kind.name == "array"
        array = table_of(raw)[death.start + len(b"\x07x-death") + 1 : death.end]
        assert array[4:5] == b"F"
        kinds = {field.name.decode(): field.kind.name for field in fields_of(array[5:])}
        assert kinds == {
            "count": "long",
            "reason": "longstr",
            "queue": "longstr",
            "time": "timestamp",
            "exchange": "longstr",
            "routing-keys": "array",
        }
        assert b"\x05countl" + struct.pack(">q", deaths) in array


def test_first_death_headers_are_long_strings_and_come_last() -> None:
    kinds = {field.name.decode(): field.kind.name for field in fields_of(table_of(raw_of_a_dead_letter()))}
    assert {name: kind for name, kind in kinds.items() if name.startswith("x-")} == {
        "x-death": "array",
        "x-first-death-reason": "longstr",
        "x-first-death-queue": "longstr",
        "x-first-death-exchange": "longstr",
        "x-last-death-reason": "longstr",
        "x-last-death-queue": "longstr",
        "x-last-death-exchange": "longstr",
    }


def test_the_delivery_count_is_a_long() -> None:
    edited = AMQP.header(b"\0\0").edited({"x-delivery-count": 3})
    assert table_of(edited.raw) == sized(b"\x10x-delivery-countI" + struct.pack(">i", 3))
    scenario = Scenario(AmqpClient)
    scenario.queue("q", {"x-queue-type": "quorum"})
    scenario.publish(b"m")
    scenario.requeue()
    entry = scenario.vhost.queue("q").ready.peek()
    assert entry is not None
    shown = scenario.vhost.queue("q").shown(entry)
    assert table_of(shown.header.raw) == sized(b"\x10x-delivery-countl" + struct.pack(">q", 1))
    assert entry.message.header.raw == b"\0\0", "the stored message must not change"


def test_editing_a_header_without_headers_adds_some_and_removes_the_expiration() -> None:
    header = AMQP.header(struct.pack(">H", 0x0100) + b"\x03100")
    edited = header.edited({"k": "v"}, drops_expiration=True)
    assert edited.raw == struct.pack(">H", HEADERS_ONLY) + sized(b"\x01kS" + sized(b"v"))
    assert (header.expiration_ms, edited.expiration_ms) == (100, None)


def entry(queue: bytes, reason: bytes, more: bytes = b"") -> bytes:
    """Return an entry of ``x-death`` as a client may encode it, with other types."""
    return b"F" + sized(b"\x05queueS" + sized(queue) + b"\x06reasonS" + sized(reason) + more)


#: Fields that no broker writes: a note, a count of 16 bits and a float.
MORE = b"\x04noteS" + sized(b"mine") + b"\x05counts" + struct.pack(">h", 7) + b"\x01gf" + struct.pack(">f", 0.5)
ELSEWHERE = entry(b"elsewhere", b"rejected", MORE)


def x_death_after(brought: bytes) -> bytes:
    """Publish a message with these items in ``x-death``, let it be dead-lettered, and return the items that a consumer
    receives.
    """
    scenario = Scenario(AmqpClient)
    scenario.queue("dead")
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    edge = scenario.client
    headers = sized(b"\x07x-deathA" + sized(brought))
    edge.peer.send(publish("", "q", b"m", raw=struct.pack(">H", HEADERS_ONLY) + headers))
    edge.peer.receive()
    scenario.reject("q")
    letter = scenario.vhost.queue("dead").ready.peek()
    assert letter is not None
    table = table_of(letter.message.header.raw)
    (death,) = (field for field in fields_of(table) if field.name == b"x-death")
    return table[death.start + len(b"\x07x-deathA") + 4 : death.end]


def test_x_death_entries_of_a_client_keep_their_bytes() -> None:
    items = x_death_after(ELSEWHERE + b"S" + sized(b"no entry") + b"b\x05")
    assert items.endswith(ELSEWHERE + b"S" + sized(b"no entry") + b"b\x05")
    assert items.startswith(b"F")
    assert items.count(b"\x05queueS") == 2


def test_an_entry_of_the_same_death_keeps_a_clients_fields_and_is_counted_up() -> None:
    items = x_death_after(ELSEWHERE + entry(b"q", b"rejected", MORE))
    assert items.endswith(ELSEWHERE)
    first = items[: -len(ELSEWHERE)]
    assert b"\x04noteS" + sized(b"mine") in first
    assert b"\x01gf" + struct.pack(">f", 0.5) in first
    assert b"\x05countl" + struct.pack(">q", 8) in first


def test_duplicate_entries_are_merged_and_their_counts_added() -> None:
    items = x_death_after(entry(b"q", b"rejected") * 3 + ELSEWHERE)
    assert items.count(b"\x01q") == 1 or items.count(sized(b"q")) == 1
    assert b"\x05countl" + struct.pack(">q", 4) in items
    assert items.endswith(ELSEWHERE)


def test_a_count_that_cannot_grow_is_restarted() -> None:
    items = x_death_after(entry(b"q", b"rejected", b"\x05countl" + struct.pack(">q", 2**63 - 1)))
    assert b"\x05countl" + struct.pack(">q", 1) in items
