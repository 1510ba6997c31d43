"""A super stream's exchange chooses partitions as RabbitMQ's stream clients do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import Value
from gateway.testing.exchange_type import StandIn, plain_message, stand_in_binding
from gateway_exchanges.murmur import murmur3
from gateway_exchanges.super_stream import ORDER, SuperStream

#: Published test vectors of MurmurHash3_x86_32.
VECTORS = [
    (b"", 0, 0),
    (b"", 1, 0x514E28B7),
    (b"", 0xFFFFFFFF, 0x81F16F39),
    (b"\xff\xff\xff\xff", 0, 0x76293B50),
    (b"!Ce\x87", 0, 0xF55B516B),
    (b"!Ce", 0, 0x7E4A8634),
    (b"!C", 0, 0xA0F7B07A),
    (b"!", 0, 0x72661CF4),
    (b"abc", 0, 0xB3DD93FA),
    (b"Hello, world!", 1234, 0xFAF6CDB3),
    (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
]


@pytest.mark.parametrize(("data", "seed", "hash"), VECTORS)
def test_the_hash_is_murmur3(data: bytes, seed: int, hash: int) -> None:
    assert murmur3(data, seed) == hash


def super_stream(numbers: list[int], arguments: list[dict[str, Value]]) -> SuperStream:
    exchange_type = SuperStream({})
    for number in numbers:
        exchange_type.bind(stand_in_binding(StandIn(f"s-{number}"), str(number), arguments[number]))
    return exchange_type


def chosen(exchange_type: SuperStream, key: str) -> list[str]:
    return [destination.name for destination in exchange_type.route(plain_message(key))]


@given(key=st.text(max_size=20), order=st.permutations(range(12)))
def test_partitions_are_ordered_by_number_whatever_the_order_of_binding(key: str, order: list[int]) -> None:
    arguments: list[dict[str, Value]] = [{ORDER: number} for number in range(12)]
    assert chosen(super_stream(order, arguments), key) == [f"s-{murmur3(key.encode(), 104_729) % 12}"]


@given(key=st.text(max_size=20), order=st.permutations(range(5)))
def test_partitions_without_a_number_are_ordered_by_name(key: str, order: list[int]) -> None:
    arguments: list[dict[str, Value]] = [{}] * 5
    assert chosen(super_stream(order, arguments), key) == chosen(super_stream([0, 1, 2, 3, 4], arguments), key)


def test_every_partition_gets_about_the_same_number_of_keys() -> None:
    exchange_type = super_stream([0, 1, 2], [{ORDER: number} for number in range(3)])
    counts = {f"s-{number}": 0 for number in range(3)}
    for number in range(3000):
        (name,) = chosen(exchange_type, f"invoice-{number}")
        counts[name] += 1
    assert all(900 < count < 1100 for count in counts.values())
