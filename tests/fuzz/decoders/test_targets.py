"""Every target on its corpus, on the inputs of earlier findings, and on some thousands of mutations.

``make fuzz-decoders`` continues with atheris, guided by coverage.
"""

import logging
import re
from collections.abc import Iterator

import pytest

from tests.effort import examples
from tests.fuzz.decoders import trial
from tests.fuzz.decoders.catalogue import TARGETS
from tests.fuzz.decoders.corpus import REGRESSIONS, inputs_of, regressions_of
from tests.fuzz.decoders.target import Target
from tests.fuzz.mutating import mutated

#: Mutations of each target; those that build a broker for each input get fewer.
_MUTATIONS = 250
_OF_CONNECTIONS = 25


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Suppress the log: many inputs are refused with a line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


def test_the_targets_leave_the_log_of_other_tests_as_it_is() -> None:
    """They are imported by each process that collects these tests."""
    assert logging.getLogger("gateway").level == logging.NOTSET


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_corpus_and_earlier_findings_obey_the_laws(target: Target) -> None:
    inputs = inputs_of(target)
    assert inputs
    for data in inputs:
        trial.run(target, data)
    for data in sorted(inputs, key=len)[-3:]:
        trial.run_measured(target, data)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_mutations_obey_the_laws(target: Target) -> None:
    sessions = [[data] for data in inputs_of(target)]
    count = examples(_OF_CONNECTIONS if target.name.startswith("connection") else _MUTATIONS)
    for number in range(count):
        data = b"".join(mutated(sessions, target.name, number))[: target.longest]
        try:
            trial.run(target, data)
        except Exception as error:
            error.add_note(f"{target.name}, mutation {number}: {data!r}")
            raise


def test_regressions_are_of_targets() -> None:
    assert {folder.name for folder in REGRESSIONS.iterdir()} <= TARGETS.keys()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_regression_is_named_by_what_was_wrong(target: Target) -> None:
    for name, data in regressions_of(target.name):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name), f"{target.name}/{name}: words with hyphens"
        assert len(data) <= target.longest, f"{target.name}/{name}: make it shorter"
