"""Health checks of several cells: one that fails, or says nothing, is named."""

from collections.abc import Sequence
from json import dumps
from typing import cast

import pytest
from twisted.internet.task import Clock

from gateway.access import Principal
from gateway.management.cells.cell_answer import NO_FLOW, CellAnswer, CellFlow, CellQuestion
from gateway.management.cells.cells import Cells
from gateway.management.cells.checking import joined_check
from gateway.management.http.routes import Fields, Reply
from gateway.management.web.request import Request

OK: Fields = {"status": "ok"}


class AnsweringCells:
    """The first of several cells; the others give an answer each, ``None`` for none."""

    own = 1

    def __init__(self, *answers: tuple[int, Fields] | None) -> None:
        self._answers = dict(enumerate(answers, 2))
        self.asked: list[str] = []

    @property
    def others(self) -> Sequence[int]:
        return list(self._answers)

    def ask(self, cell: int, question: CellQuestion, answer: CellAnswer) -> CellFlow:
        self.asked.append(question.target)
        if (given := self._answers[cell]) is not None:
            status, fields = given
            answer.begun(status, ())
            answer.piece(dumps(fields).encode())
            answer.ended()
        return NO_FLOW


def alarm(node: str) -> Fields:
    return {"status": "failed", "reason": "There are alarms", "alarms": [{"node": node, "resource": "disk"}]}


def checked(own: Reply, *answers: tuple[int, Fields] | None, needs_all: bool, is_asked: bool = True) -> Reply:
    """Return the result of a check, after the time for answers."""
    clock, cells, results = Clock(), AnsweringCells(*answers), list[Reply]()
    request = Request(None, "GET", "/api/health/checks/x", [], "127.0.0.1", is_local=True)  # type: ignore[arg-type]

    def run():  # type: ignore[no-untyped-def]
        results.append(
            (yield from joined_check(own, cast(Cells, cells), request, Principal("anna"), clock, needs_all=needs_all))
        )

    for waiting in run():  # type: ignore[no-untyped-call]
        if not waiting.called:
            clock.advance(6)
    assert cells.asked == (["/api/health/checks/x"] * len(answers) if is_asked else [])
    return results[0]


@pytest.mark.parametrize("needs_all", [False, True])
def test_what_holds_in_all_cells_holds(needs_all: bool) -> None:
    own = Reply(200, OK)
    assert checked(own, (200, OK), (200, OK), needs_all=needs_all) is own


def test_the_alarms_of_all_cells_are_in_one_answer() -> None:
    found = checked(Reply(503, alarm("a")), (200, OK), (503, alarm("c")), needs_all=True)
    nodes = [{"node": "a", "resource": "disk"}, {"node": "c", "resource": "disk"}]
    assert (found.status, found.fields) == (503, {**alarm("a"), "alarms": nodes, "cells": [1, 3]})


def test_a_cell_that_says_nothing_fails() -> None:
    reason = "cell 2 of the cluster does not answer: it says nothing for 5 s"
    found = checked(Reply(200, OK), None, needs_all=True)
    assert (found.status, found.fields) == (503, {"status": "failed", "reason": reason, "cells": [2]})


def test_a_check_that_the_first_cell_decides_waits_a_second_at_most() -> None:
    found = checked(Reply(200, OK), None, needs_all=False)
    reason = "cell 2 of the cluster does not answer: it says nothing for 1 s"
    assert (found.status, found.fields) == (200, {"status": "ok", "failed_cells": [{"cell": 2, "reason": reason}]})
    own = Reply(503, {"status": "failed"})
    assert checked(own, None, needs_all=False, is_asked=False) is own


def test_the_clients_of_other_cells_are_served_while_one_fails() -> None:
    failure = {"status": "failed", "reason": "the lease is about to end"}
    found = checked(Reply(200, OK), (503, failure), needs_all=False)
    failed = [{"cell": 2, "reason": "the lease is about to end"}]
    assert (found.status, found.fields) == (200, {"status": "ok", "failed_cells": failed})
