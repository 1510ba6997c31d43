"""The record of a new virtual host is deleted if the only request that makes it is refused, and else it stays."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred

from gateway.access import Principal
from gateway.management.cells.cell_answer import NO_FLOW, CellAnswer, CellFlow, CellQuestion
from gateway.management.cells.cells import PlacedVhost
from gateway.management.cells.definitions_import import importing
from gateway.management.cells.desk import CellDesk
from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Endpoint
from gateway.management.web.request import Headers, Request
from tests.cluster.scripted_logs import run
from tests.cluster.test_cell_seat import Leaders

ADMINISTRATOR = Principal("guest", frozenset({"administrator"}))
PUT = cast(Endpoint, SimpleNamespace(method="PUT", path="/vhosts/<name>"))


class SeenHead:
    """The connection of a client, which keeps the status."""

    def __init__(self) -> None:
        self.status: int | None = None

    def send_head(self, status: int, headers: Headers) -> None:
        self.status = status

    def send(self, data: bytes) -> None:
        """Ignore the body."""

    def end(self) -> None:
        """Ignore the end."""


class Desk:
    """The HTTP API of the leader of the first of two cells, and the requests that it passes on."""

    def __init__(self) -> None:
        self.leaders = Leaders()
        self.first, self.other = self.leaders.lead(1).broker, self.leaders.lead(2).broker
        self.seat = self.leaders.seats[1]
        self.seat._ask = self._ask
        self.passed_on: list[CellAnswer] = []
        context: Any = SimpleNamespace(broker=self.first, touch=lambda: None)
        self._desk = CellDesk(context, self.seat, True, self._refuse, lambda call: call())

    def _ask(self, cell: int, question: CellQuestion, answer: CellAnswer) -> CellFlow:
        self.passed_on.append(answer)
        return NO_FLOW

    def _refuse(self, request: Request, error: Exception) -> None:
        assert isinstance(error, HttpError)
        request.answer(error.status, [], b"")

    def put(self, name: str) -> SeenHead:
        """Ask for a virtual host in cell 2, in the name of a client."""
        head = SeenHead()
        request = Request(head, "PUT", f"/api/vhosts/{name}", [], "127.0.0.1", is_local=True)  # type: ignore[arg-type]
        request.receive_body(b'{"cell": 2}')
        try:
            self._desk.answer(PUT, request, {"name": name}, ADMINISTRATOR, _not_here)
        except HttpError as error:
            self._refuse(request, error)
        self.leaders.settle()
        return head

    def answer(self, number: int, status: int) -> None:
        """Let the leader of cell 2 answer a request that was passed on."""
        self.passed_on[number].begun(status, ())
        self.passed_on[number].ended()

    def cell_of(self, name: str) -> int | None:
        self.leaders.settle()
        return self.leaders.maps[2].cell_of(name)


def _not_here() -> None:
    raise AssertionError("the first cell makes the virtual host")


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_refused_request_alone_leaves_no_record(desk: Desk) -> None:
    head = desk.put("x")
    assert desk.cell_of("x") == 2
    desk.answer(0, 400)
    assert (head.status, desk.cell_of("x")) == (400, None)


def test_a_refused_request_keeps_the_record_of_another_one(desk: Desk) -> None:
    refused, made = desk.put("x"), desk.put("x")
    desk.other.declare_vhost("x")
    desk.answer(1, 201)
    desk.answer(0, 400)
    assert (refused.status, made.status, desk.cell_of("x")) == (400, 201, 2)
    assert desk.first.directory.permission("x", "guest") is not None


def test_a_request_is_not_passed_on_while_the_record_of_a_refused_one_is_deleted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, answered = desk.leaders.maps[1].vhosts, Deferred[None]()
    delete = records.remove

    async def slow_remove(name: str) -> None:
        await answered
        await delete(name)

    monkeypatch.setattr(records, "remove", slow_remove)
    desk.put("x")
    desk.answer(0, 400)
    assert desk.cell_of("x") == 2
    assert desk.put("x").status == 503
    assert len(desk.passed_on) == 1
    answered.callback(None)
    assert desk.cell_of("x") is None
    again = desk.put("x")
    desk.answer(1, 201)
    assert (again.status, desk.cell_of("x")) == (201, 2)


def test_a_request_that_finds_a_new_record_keeps_it(desk: Desk) -> None:
    placed: list[PlacedVhost] = []
    for _ in range(2):  # both before one is answered
        desk.seat.place("x", 2).addCallback(placed.append)
    desk.leaders.settle()
    assert placed == [PlacedVhost(2, True), PlacedVhost(2, False)]
    desk.seat.forget_placed("x")
    assert desk.cell_of("x") == 2


def test_an_import_keeps_the_record_of_the_virtual_host_that_it_makes(desk: Desk) -> None:
    desk.put("x")
    call: Any = SimpleNamespace(
        broker=desk.first,
        headers={},
        principal=ADMINISTRATOR,
        peer_host="127.0.0.1",
        is_secure=False,
        context=SimpleNamespace(passwords=None),
    )
    steps = importing(call, desk.seat, {"vhosts": [{"name": "x"}]}, only_checks=False)
    for waiting in steps:
        if waiting is not None and not waiting.called:
            desk.answer(-1, 204)
    desk.answer(0, 400)
    assert desk.cell_of("x") == 2


@pytest.mark.parametrize("leads_again", [False, True])
def test_the_leader_of_a_virtual_host_writes_a_lost_record_again(desk: Desk, leads_again: bool) -> None:
    desk.put("x")
    desk.other.declare_vhost("x")
    desk.leaders.settle()
    if leads_again:
        desk.leaders.seats[2].close()
    run(desk.leaders.maps[1].vhosts.remove("x"))
    if leads_again:
        assert desk.cell_of("x") is None
        desk.leaders.lead(2, epoch=2)
    assert desk.cell_of("x") == 2


def test_a_virtual_host_that_is_made_while_its_record_is_deleted_has_one(desk: Desk) -> None:
    desk.put("x")
    run(desk.leaders.maps[1].vhosts.remove("x"))
    desk.leaders.settle()
    desk.other.declare_vhost("x")
    assert desk.cell_of("x") == 2
