"""Offsets round-trip, limits hold without starvation, and tasks cover their ranges."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_spark.errors import OptionError
from gateway_spark.offsets import Key, PartitionOffset, Range, decode, encode, limited, ranges, split

OFFSETS = st.integers(0, 2**40)
KEYS = st.builds(Key, st.text(min_size=1, max_size=3), st.integers(0, 11).map(str))
ENTRIES = st.one_of(
    st.builds(PartitionOffset, OFFSETS),
    st.tuples(OFFSETS, st.integers(0, 1000), st.none() | st.text(max_size=3)).map(
        lambda each: PartitionOffset(each[0] + each[1], each[0], each[2])
    ),
    st.builds(PartitionOffset, OFFSETS, incarnation=st.text(max_size=3)),
    st.builds(PartitionOffset, OFFSETS, incarnation=st.none() | st.text(max_size=3), origin=OFFSETS, first=OFFSETS),
    st.builds(PartitionOffset, OFFSETS, first=OFFSETS),
)
REACHED = st.dictionaries(KEYS, ENTRIES, max_size=5)


@st.composite
def waiting(draw: st.DrawFn) -> list[Range]:
    sizes = draw(st.dictionaries(KEYS, st.integers(1, 5000), min_size=1, max_size=6))
    begin = draw(st.integers(0, 10**9))
    return [Range(key, begin, begin + size) for key, size in sizes.items()]


@given(reached=REACHED)
def test_an_encoded_offset_is_decoded(reached: dict[Key, PartitionOffset]) -> None:
    assert decode(json.loads(json.dumps(encode(reached)))) == reached


@given(reached=REACHED, seed=st.randoms())
def test_the_text_does_not_depend_on_the_order(reached: dict[Key, PartitionOffset], seed: object) -> None:
    items = list(reached.items())
    seed.shuffle(items)  # type: ignore[attr-defined]  # random.Random
    assert json.dumps(encode(dict(items))) == json.dumps(encode(reached))


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    reached = {Key("q", str(number)): PartitionOffset(number) for number in (10, 9, 1)}
    assert list(encode(reached)["q"]) == ["1", "9", "10"]


NO_OFFSETS = [
    [],
    {"q": 1},
    {"q": {"0": "1"}},
    {"q": {"0": True}},
    {"q": {"0": {"next": 1}}},
    {"q": {"0": {"incarnation": 3, "next": 1}}},
    {"q": {"0": None}},
]


@pytest.mark.parametrize("offset", NO_OFFSETS, ids=str)
def test_an_invalid_offset_is_refused(offset: object) -> None:
    with pytest.raises(OptionError, match="not an offset of a gateway source"):
        decode(offset)  # type: ignore[arg-type]  # that is the point


# ---- From one offset to the next ------------------------------------------------------------------------------------

BETWEEN = [
    pytest.param({}, {"q": {"0": {"from": 3, "next": 8}}}, [(3, 8)], id="first: its own start"),
    pytest.param({}, {"q": {"0": {"from": 3, "next": 3}}}, [], id="first: nothing yet"),
    pytest.param({}, {"q": {"0": {"origin": 3, "first": 1, "next": 8}}}, [(3, 8)], id="first, with Spark 4.0"),
    pytest.param(
        {"q": {"0": 8}}, {"q": {"0": {"origin": 3, "first": 1, "next": 12}}}, [(8, 12)], id="second, with Spark 4.0"
    ),
    pytest.param(
        {"q": {"0": 8}},
        {"q": {"0": 8}, "r": {"0": {"origin": 7, "first": 1, "next": 12}}},
        [(1, 12)],
        id="a new queue, with Spark 4.0",
    ),
    pytest.param(
        {"q": {"0": {"incarnation": "1", "next": 8}}},
        {"q": {"0": {"incarnation": "2", "first": 4, "next": 12}}},
        [(4, 12)],
        id="another stream of the name, with Spark 4.0",
    ),
    pytest.param({"q": {"0": 8}}, {"q": {"0": 12}}, [(8, 12)], id="then: from the previous offset"),
    pytest.param({"q": {"0": {"from": 3, "next": 8}}}, {"q": {"0": 12}}, [(8, 12)], id="second: after the first"),
    pytest.param({"q": {"0": {"from": 3, "next": 8}}}, {"q": {"0": {"from": 3, "next": 8}}}, [], id="no progress"),
    pytest.param({"q": {"0": 8}}, {"q": {"0": {"from": 20, "next": 25}}}, [(20, 25)], id="restart after a loss"),
    pytest.param({"q": {"0": 8}}, {"q": {"0": 8}, "r": {"0": {"from": 0, "next": 2}}}, [(0, 2)], id="a new queue"),
]


@pytest.mark.parametrize(("start", "end", "expected"), BETWEEN)
def test_the_ranges_between_two_offsets(start: dict, end: dict, expected: list[tuple[int, int]]) -> None:
    assert [(each.begin, each.end) for each in ranges(decode(start), decode(end))] == expected


def test_a_first_batch_without_a_start_is_not_read() -> None:
    """Spark 4.0 planned it with refused options."""
    with pytest.raises(OptionError, match="nothing is read yet, so delete the checkpoint"):
        ranges({}, decode({"q": {"0": {"first": 1, "next": 8}}}))


# ---- Limits ---------------------------------------------------------------------------------------------------------


@given(waiting=waiting(), most=st.integers(1, 20_000))
def test_a_limit_is_used_completely_and_not_exceeded(waiting: list[Range], most: int) -> None:
    taken = limited(waiting, most)
    assert sum(each.size for each in taken) == min(most, sum(each.size for each in waiting))
    whole = {each.key: each for each in waiting}
    assert all(each.begin == whole[each.key].begin and each.end <= whole[each.key].end for each in taken)


@given(waiting=waiting(), most=st.integers(1, 20_000))
def test_each_partition_gets_a_share_if_the_limit_allows(waiting: list[Range], most: int) -> None:
    if most >= len(waiting):
        assert len(limited(waiting, most)) == len(waiting)


@given(waiting=waiting(), most=st.integers(1, 50))
def test_no_partition_starves(waiting: list[Range], most: int) -> None:
    seen = set()
    left = {each.key: each for each in waiting}
    for _ in range(len(waiting)):
        for taken in limited(left.values(), most):
            seen.add(taken.key)
            rest = Range(taken.key, taken.end, left[taken.key].end)
            left[taken.key] = rest
        left = {key: each for key, each in left.items() if each.size}
        if not left:
            break
    assert seen == {each.key for each in waiting}


def test_shares_are_proportional_to_the_waiting_messages() -> None:
    one, two = Range(Key("a", "0"), 0, 9000), Range(Key("b", "0"), 0, 1000)
    assert [each.size for each in limited([one, two], 1000)] == pytest.approx([900, 100], abs=2)


# ---- Tasks ----------------------------------------------------------------------------------------------------------


@given(waiting=waiting(), least=st.none() | st.integers(1, 40), most=st.none() | st.integers(1, 3000))
def test_tasks_cover_every_message_once(waiting: list[Range], least: int | None, most: int | None) -> None:
    pieces = split(waiting, least=least, most_rows=most)
    for whole in waiting:
        cuts = [(each.begin, each.end) for each in pieces if each.key == whole.key]
        assert cuts[0][0] == whole.begin
        assert cuts[-1][1] == whole.end
        assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(cuts))
        assert all(begin < end for begin, end in cuts)
    if most is not None:
        assert max(each.size for each in pieces) <= most
    if least is not None:
        assert len(pieces) >= min(least, sum(each.size for each in waiting))


def test_by_default_there_is_one_task_for_each_partition() -> None:
    whole = [Range(Key("q", str(number)), 0, 10) for number in range(3)]
    assert split(whole) == whole
