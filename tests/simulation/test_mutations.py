"""Mistakes put into the broker are noticed; ``python -m tests.simulation.mutations`` tries the whole table."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.simulation.mutations.__main__ import outcome_of
from tests.simulation.mutations.importing import mutated
from tests.simulation.mutations.table import MUTATIONS, Mutation

#: Mistakes of different kinds that few seeds suffice for.
QUICK = (
    "a rollback keeps what was published",
    "a message that expires is not dead-lettered",
    "the prefetch limit allows one more",
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_piece_of_source_is_there_once(mutation: Mutation) -> None:
    found = find_spec(mutation.module)
    assert found is not None
    assert found.origin is not None
    source = Path(found.origin).read_text()
    assert mutated(source, mutation) != source


def test_there_are_many_mutations_and_each_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 25


@pytest.mark.parametrize("name", QUICK)
def test_a_mistake_is_noticed(name: str) -> None:
    number = [mutation.name for mutation in MUTATIONS].index(name)
    is_noticed, seeds, rule = outcome_of(number)
    assert is_noticed, f"{seeds}: {rule}"
