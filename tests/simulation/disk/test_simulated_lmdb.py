"""The simulated LMDB answers as the real one does: values, order, cursors, snapshots and errors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.simulation.disk import SimulatedDisk, SimulatedThreads
from tests.effort import examples

TABLES = [b"one", b"two"]
OPTIONS: dict[str, Any] = {"map_size": 1 << 24, "max_dbs": 3, "sync": False}

KEYS = st.sampled_from([b"", b"\0", b"a", b"ab", b"b", b"ba", b"c", b"d" * 511, b"d" * 512, b"\xff"])
VALUES = st.sampled_from([b"", b"1", b"22", b"3" * 1500, b"4" * 9000])
RECORDS = st.lists(st.tuples(KEYS.filter(lambda key: 0 < len(key) < 512), VALUES), max_size=5)
TABLE = st.integers(0, 1)

#: A call on a transaction: the name of the method, the table and its arguments.
CALLS = st.one_of(
    st.tuples(st.just("get"), TABLE, st.tuples(KEYS)),
    st.tuples(st.just("put"), TABLE, st.tuples(KEYS, VALUES)),
    st.tuples(st.just("put_new"), TABLE, st.tuples(KEYS, VALUES)),
    st.tuples(st.just("delete"), TABLE, st.tuples(KEYS)),
    st.tuples(st.just("pop"), TABLE, st.tuples(KEYS)),
    st.tuples(st.just("drop"), TABLE, st.just(())),
    st.tuples(st.just("count"), TABLE, st.just(())),
)
#: A call on a cursor.
MOVES = st.one_of(
    st.tuples(st.sampled_from(["first", "last", "next", "prev", "delete", "rest"]), st.just(())),
    st.tuples(st.sampled_from(["set_key", "set_range"]), st.tuples(KEYS)),
    st.tuples(st.just("put"), st.tuples(KEYS, VALUES)),
    st.tuples(st.sampled_from(["putmulti", "append"]), st.tuples(RECORDS)),
)
CURSORS = st.tuples(st.just("cursor"), TABLE, st.lists(MOVES, max_size=8))
TRANSACTIONS = st.tuples(
    st.sampled_from(["commit", "commit", "abort", "read"]), st.lists(CALLS | CURSORS | CURSORS, max_size=8)
)


def simulated(path: Path = Path("/data")) -> Any:
    disk = SimulatedDisk(Random(0)).process(SimulatedThreads(lambda delay_s, call: None, lambda: 0.0, Random(0)))
    disk.make_directory(path, parents=True)
    return disk.open_lmdb(path, **OPTIONS)


def answer(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the class and code of its error."""
    try:
        found = call()
    except lmdb.Error as error:
        return type(error), getattr(error, "code", None)
    return list(found) if isinstance(found, Iterator) else found


def on_cursor(cursor: Any, moves: list[tuple[str, tuple[Any, ...]]]) -> Iterator[Any]:
    """Yield the answers to calls on a cursor. After a miss, only an absolute move follows, as in the store."""
    is_lost = False
    for name, arguments in moves:
        if name in ("next", "prev", "delete", "rest") and is_lost:
            continue
        if name == "rest":
            found = answer(lambda: list(cursor.iternext()))
        elif name == "append":
            found = answer(lambda records=arguments[0]: cursor.putmulti(sorted(dict(records).items()), append=True))
        else:
            found = answer(lambda name=name, arguments=arguments: getattr(cursor, name)(*arguments))
        yield found
        is_lost = found is False or type(found) is not bool
        if not is_lost:
            yield cursor.item()
            is_lost = not cursor.key()


def on_transaction(environment: Any, tables: list[Any], how: str, calls: list[Any]) -> list[Any]:
    """Return the answers to the calls of a transaction."""
    answers: list[Any] = []
    transaction = environment.begin(write=how != "read")
    for name, number, arguments in calls:
        db = tables[number]
        if name == "cursor":
            with transaction.cursor(db) as cursor:
                answers += on_cursor(cursor, arguments)
        elif name == "drop":
            answers.append(answer(lambda db=db: transaction.drop(db, delete=False)))
        elif name == "count":
            answers.append(answer(lambda db=db: transaction.stat(db)["entries"]))
        elif name == "put_new":
            answers.append(answer(lambda db=db, a=arguments: transaction.put(*a, db=db, overwrite=False)))
        else:
            answers.append(answer(lambda db=db, a=arguments, name=name: getattr(transaction, name)(*a, db=db)))
    transaction.abort() if how == "abort" else transaction.commit()
    return answers


def content(transaction: Any, tables: list[Any]) -> list[list[tuple[bytes, bytes]]]:
    return [list(transaction.cursor(db)) for db in tables]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(TRANSACTIONS, max_size=6))
def test_any_calls_get_the_same_answers(transactions: list[tuple[str, list[Any]]]) -> None:
    with tempfile.TemporaryDirectory() as directory, lmdb.open(directory, **OPTIONS) as real:
        ours = simulated()
        both = [(each, [each.open_db(name) for name in TABLES]) for each in (real, ours)]
        readers = []
        for how, calls in transactions:
            expected, found = (on_transaction(each, tables, how, calls) for each, tables in both)
            assert found == expected
            readers.append([(each.begin(), tables) for each, tables in both])
        for (transaction, tables), (our_transaction, our_tables) in readers:
            assert content(our_transaction, our_tables) == content(transaction, tables), "a snapshot differs"
            transaction.abort()


def _fill(environment: Any) -> None:
    table = environment.open_db(b"one")
    with environment.begin(write=True) as transaction:
        for number in range(10_000):
            transaction.put(b"%d" % number, bytes(4000), db=table)


def _finished(environment: Any) -> None:
    table = environment.open_db(b"one")
    with environment.begin() as transaction:
        pass
    transaction.get(b"key", db=table)


MISUSES: dict[str, Callable[[Any], object]] = {
    "a table that does not exist": lambda environment: environment.open_db(b"none", create=False),
    "too many tables": lambda environment: [environment.open_db(b"%d" % number) for number in range(4)],
    "a transaction that ended": _finished,
    "an environment that is closed": lambda environment: (environment.close(), environment.begin()),
    "more than the size of the map": _fill,
}


@pytest.mark.parametrize("misuse", MISUSES.values(), ids=MISUSES.keys())
def test_an_error_is_that_of_lmdb(misuse: Callable[[Any], object], tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), **OPTIONS) as real, pytest.raises(lmdb.Error) as expected:
        misuse(real)
    with pytest.raises(lmdb.Error) as found:
        misuse(simulated())
    assert type(found.value) is type(expected.value)
    assert getattr(found.value, "code", None) == getattr(expected.value, "code", None)


def test_values_of_a_transaction_with_buffers_are_views() -> None:
    environment = simulated()
    table = environment.open_db(b"one")
    with environment.begin(write=True) as transaction:
        transaction.put(b"key", b"value", db=table)
    with environment.begin(buffers=True) as transaction, transaction.cursor(table) as cursor:
        assert cursor.first()
        assert isinstance(cursor.value(), memoryview)
        assert bytes(cursor.value()[:3]) == b"val"
