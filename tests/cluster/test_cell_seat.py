"""The leader of the first cell tells the others of users and virtual hosts, and they make what the records say."""

import json
from collections.abc import Generator
from dataclasses import replace

import pytest
from twisted.internet.defer import Deferred

from gateway.cluster.cells import VhostPlace, VhostState
from gateway.cluster.queue_log import Epoch
from gateway.kernel.acting import Actor
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connection_limits import require_room_for_connection
from gateway.kernel.errors import NotAllowed, PreconditionFailed
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.settings.limits import ConnectionLimits
from gateway.logs import StructuredLog
from gateway.management.cells.cell_answer import NO_FLOW, CellAnswer, CellFlow, CellQuestion
from gateway.management.cells.cells import PlacedVhost
from gateway.management.cells.definitions import DefinitionParts
from gateway.management.cells.numbering import cell_of_number
from gateway.node.cluster.cell_map import CellMap
from gateway.node.cluster.cell_seat import CellSeat
from gateway.testing.clock import FakeClock
from gateway_memory.cluster import MemoryBus, MemoryMetadata
from tests.cluster.scripted_logs import run
from tests.protocols.amqp.dialogue import Gateway


def _nobody_is_asked(*question: object) -> None:
    raise AssertionError(f"another cell is asked: {question}")


def _result(steps: Generator[None, None, DefinitionParts]) -> DefinitionParts:
    """Return the result of steps."""
    found: list[DefinitionParts] = []

    def run() -> Generator[None, None, None]:
        found.append((yield from steps))

    for _ in run():
        pass
    return found[0]


class Leaders:
    """The leaders of two cells, each on a node of its own."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metadata = MemoryMetadata(self.clock)
        self.bus = MemoryBus(self.clock)
        self.gateways = {1: Gateway(), 2: Gateway()}
        self.maps = {1: self._map("a", "b"), 2: self._map("b", "a")}
        self.seats: dict[int, CellSeat] = {}

    def _map(self, node: str, other: str) -> CellMap:
        found = CellMap(self.metadata, self.bus, self.clock, node, 2, lambda: [other])
        Deferred.fromCoroutine(found.open())
        return found

    def lead(self, cell: int, epoch: int = 1) -> Gateway:
        """Let a leader begin with what its log has."""
        self.settle()
        found = self.maps[cell]
        seat = CellSeat(cell, Epoch(epoch), found, self.clock, _nobody_is_asked)  # type: ignore[arg-type]
        found.on_vhost, found.on_shared = seat.vhost_changed, seat.shared_changed
        self.seats[cell] = seat
        for _ in seat.taking(self.gateways[cell].broker):
            pass
        self.settle()
        return self.gateways[cell]

    def settle(self) -> None:
        for _ in range(10):
            self.clock.advance(0.1)
            for gateway in self.gateways.values():
                gateway.settle()


@pytest.fixture
def leaders() -> Leaders:
    return Leaders()


def test_the_other_leader_has_what_the_first_one_had_and_each_later_change(leaders: Leaders) -> None:
    first = leaders.lead(1).broker
    first.directory.put_user(UserRecord("alice", "hash", "sha256", [], {}))
    leaders.settle()
    other = leaders.lead(2).broker
    assert other.directory.user("alice") == first.directory.user("alice")
    first.directory.put_permission(PermissionRecord("/", "alice", "c", "w", "r"))
    first.parameters.put(ParameterRecord("", "", "colour", "red"))
    leaders.settle()
    assert other.directory.permission("/", "alice") == PermissionRecord("/", "alice", "c", "w", "r")
    assert other.parameters["", "", "colour"].value == "red"
    assert leaders.maps[2].global_parameters["", "", "colour"].value == "red"
    first.directory.remove_user("alice")
    first.parameters.remove(first.parameters["", "", "colour"])
    leaders.settle()
    assert other.directory.user("alice") is None
    assert other.directory.permission("/", "alice") is None
    assert ("", "", "colour") not in other.parameters


def test_a_change_is_told_when_it_is_stored_and_no_sooner(leaders: Leaders) -> None:
    first = leaders.lead(1)
    leaders.lead(2)
    first.broker.directory.put_user(UserRecord("alice", "hash", "sha256", [], {}))
    known: list[str] = []
    for _ in range(10):
        leaders.clock.advance(0.1)  # the turn of the first broker does not end
    assert ("user", "alice") not in leaders.maps[1].shared.by_key
    leaders.settle()
    leaders.seats[1].when_shared(lambda: known.append("all"))
    leaders.settle()
    assert known == ["all"]
    assert leaders.gateways[2].broker.directory.user("alice") is not None


def test_only_the_first_cell_changes_users(leaders: Leaders) -> None:
    leaders.lead(1)
    other = leaders.lead(2).broker
    with pytest.raises(PreconditionFailed, match="first cell"):
        other.directory.put_user(UserRecord("bob", "hash", "sha256", [], {}))
    with pytest.raises(PreconditionFailed, match="first cell"):
        other.directory.remove_user("guest")
    with pytest.raises(PreconditionFailed, match="first cell"):
        other.parameters.put(ParameterRecord("", "", "colour", "red"))
    other.parameters.put(ParameterRecord("/", "thing", "colour", "red"))


def test_virtual_hosts_have_records_and_a_leader_makes_and_deletes_what_they_say(leaders: Leaders) -> None:
    leaders.lead(1)
    assert leaders.maps[2].vhosts.place_of("/") == VhostPlace(1)
    records = leaders.maps[1].vhosts
    run(records.remove("/"))
    assert not leaders.seats[1].has_vhosts
    run(records.make("made", 2))
    assert leaders.seats[1].has_vhosts
    run(records.make("going", 2))
    leaders.gateways[2].broker.declare_vhost("going")
    run(records.mark_deleting("going"))
    run(records.make("gone", 2))
    run(records.mark_deleting("gone"))
    other = leaders.lead(2).broker
    leaders.settle()
    assert "made" in other.vhost_by_name
    assert "going" not in other.vhost_by_name
    assert {name for name in ("made", "going", "gone") if records.place_of(name)} == {"made"}


def test_the_permissions_of_a_deleted_virtual_host_of_another_cell_are_removed(leaders: Leaders) -> None:
    first = leaders.lead(1).broker
    other = leaders.lead(2).broker
    run(leaders.maps[1].vhosts.make("made", 2))
    other.declare_vhost("made")
    first.directory.put_permission(PermissionRecord("made", "guest", "", "", ""))
    leaders.settle()
    run(leaders.maps[2].vhosts.mark_deleting("made"))
    assert leaders.maps[2].vhosts.place_of("made") == VhostPlace(2, VhostState.DELETING)
    other.delete_vhost("made")
    leaders.settle()
    assert leaders.maps[1].vhosts.place_of("made") is None
    assert first.directory.permission("made", "guest") is None
    assert other.directory.permission("made", "guest") is None


def test_permissions_that_a_dead_leader_did_not_remove_are_removed_by_the_next_one(leaders: Leaders) -> None:
    first = leaders.gateways[1].broker
    first.directory.put_permission(PermissionRecord("gone", "guest", "", "", ""))
    leaders.lead(1)
    leaders.settle()
    assert first.directory.permission("gone", "guest") is None
    assert first.directory.permission("/", "guest") is not None


def test_a_new_virtual_host_goes_to_the_cell_with_the_fewest_and_all_nodes_know_it(leaders: Leaders) -> None:
    leaders.lead(1)
    leaders.lead(2)
    placed: list[PlacedVhost] = []
    for name in ("x", "y", "y"):
        leaders.seats[1].place(name).addCallback(placed.append)
        leaders.settle()
    assert placed == [PlacedVhost(2, True), PlacedVhost(1, True), PlacedVhost(1, False)]
    assert leaders.maps[2].cell_of("y") == 1


def test_definitions_are_shared_with_the_other_cell(leaders: Leaders) -> None:
    leaders.lead(1)
    questions: list[CellQuestion] = []

    def ask(cell: int, question: CellQuestion, answer: CellAnswer) -> CellFlow:
        questions.append(question)
        if len(questions) == 1:
            answer.failed("it has no leader now")
        else:
            answer.begun(204, ())
            answer.ended()
        return NO_FLOW

    seat = leaders.seats[1]
    seat._ask = ask
    document = {
        "vhosts": [{"name": "x"}, {"name": "y"}, {"name": "z", "cell": 1}],
        "permissions": [{"vhost": "x", "user": "guest"}],
        "queues": [{"name": "of x", "vhost": "x"}, {"name": "of y", "vhost": "y"}, {"name": "own"}],
    }
    parts = _result(seat.sharing(document, "/"))
    assert [each["name"] for each in parts.own["vhosts"]] == ["z"]
    assert (parts.own["queues"], parts.own["permissions"]) == ([{"name": "own"}], document["permissions"])
    assert parts.elsewhere == {"x", "y"}
    leaders.clock.advance(5)
    leaders.settle()
    assert [json.loads(each.content) for each in questions] == [
        {
            "vhosts": [{"name": "x"}, {"name": "y"}],
            "queues": [{"name": "of x", "vhost": "x"}, {"name": "of y", "vhost": "y"}],
        }
    ] * 2
    assert [leaders.maps[2].cell_of(name) for name in "xyz"] == [2, 2, None]


def test_definitions_that_name_another_cell_leave_a_virtual_host_where_it_is(
    leaders: Leaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaders.lead(1)
    warned: list[object] = []
    monkeypatch.setattr(StructuredLog, "warning", lambda log, text, **fields: warned.append(fields))
    run(leaders.maps[1].vhosts.make("x", 2))
    document = {"vhosts": [{"name": "x", "cell": 1}, {"name": "y", "cell": 1}], "queues": [{"name": "q", "vhost": "x"}]}
    parts = _result(leaders.seats[1].sharing(document, "/"))
    assert ([each["name"] for each in parts.own["vhosts"]], parts.elsewhere) == (["y"], {"x"})
    assert parts.others == {2: {"vhosts": [{"name": "x"}], "queues": [{"name": "q", "vhost": "x"}]}}
    assert warned == [{"vhosts": ["x"]}]


def test_the_numbers_of_each_cell_say_which_one_it_is(leaders: Leaders) -> None:
    for cell in (1, 2):
        broker = leaders.lead(cell).broker
        numbers = [broker.workbench.next_job_number(), broker.workbench.next_job_number()]
        broker.audit.record(Actor("anna", "", "HTTP"), "queue.created")
        numbers += [entry.number for entry in broker.audit.newest_first()]
        assert {cell_of_number(number) for number in numbers} == {cell}
        assert numbers[1] == numbers[0] + 1


def _refused(broker: Broker, user: str) -> bool:
    try:
        require_room_for_connection(broker, "/", user)
    except NotAllowed:
        return True
    return False


def test_the_limits_of_a_user_hold_over_cells(leaders: Leaders) -> None:
    first, other = leaders.lead(1).broker, leaders.lead(2).broker
    guest = first.directory.user("guest")
    assert guest is not None
    first.directory.put_user(replace(guest, limits={"max-connections": 2, "max-queues": 1}))
    leaders.settle()
    peers = [leaders.gateways[cell].connect() for cell in (1, 2)]
    assert not _refused(first, "guest")
    _wait_for_figures(leaders)
    assert _refused(first, "guest")
    assert _refused(other, "guest")
    other.vhost("/").declare_queue("q", user="guest")
    _wait_for_figures(leaders)
    with pytest.raises(PreconditionFailed, match="queue limit of user 'guest' \\(1\\) is reached"):
        first.vhost("/").declare_queue("r", user="guest")
    peers[1].lose()
    _wait_for_figures(leaders)
    assert not _refused(first, "guest")
    assert not _refused(other, "guest")


def test_the_limits_of_all_users_hold_over_cells(leaders: Leaders) -> None:
    first, other = leaders.lead(1).broker, leaders.lead(2).broker
    for broker in (first, other):
        broker.connections.limits = ConnectionLimits(per_user=1)
    peer = leaders.gateways[2].connect()
    _wait_for_figures(leaders)
    assert _refused(first, "guest")
    peer.lose()
    _wait_for_figures(leaders)
    assert not _refused(first, "guest")


def test_the_figures_of_a_cell_that_has_no_leader_are_forgotten(leaders: Leaders) -> None:
    first = leaders.lead(1).broker
    leaders.lead(2)
    guest = first.directory.user("guest")
    assert guest is not None
    first.directory.put_user(replace(guest, limits={"max-connections": 1}))
    leaders.settle()
    leaders.gateways[2].connect()
    _wait_for_figures(leaders)
    assert _refused(first, "guest")
    leaders.seats[2].close()
    for _ in range(4):
        _wait_for_figures(leaders)
    assert not _refused(first, "guest")


def _wait_for_figures(leaders: Leaders) -> None:
    for _ in range(2):  # a second each
        leaders.settle()
