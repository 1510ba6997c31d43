"""Waiting for a deferred in the steps of a long task."""

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")
R = TypeVar("R")

#: The steps of a long task with a result; a step may yield a deferred to wait for.
Steps: TypeAlias = Generator["Deferred[None] | None", None, R]


def awaited(deferred: "Deferred[T]") -> "Steps[T]":
    """Return the steps that wait for a deferred, and its result. They raise what it fails with."""
    outcomes: list[Any] = []
    done: Deferred[None] = Deferred()

    def note(outcome: object) -> None:
        outcomes.append(outcome)
        done.callback(None)

    deferred.addBoth(note)
    if not outcomes:
        yield done
    (outcome,) = outcomes
    if isinstance(outcome, Failure):
        outcome.raiseException()
    result: T = outcome
    return result
