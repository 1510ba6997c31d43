"""COMMIT of very many SENDs: they are checked in slices, and all before the first message is published."""

import pytest

from gateway.access import PermissionUnknown
from gateway.kernel.budget import PendingWork
from gateway_stomp.frames import Head
from gateway_stomp.publishing import Publishing
from gateway_stomp.target import Target
from tests.clocks import TurnClock
from tests.protocols.stomp.dialogue import Client, Gateway, frame, receipt
from tests.protocols.stomp.frame_reader import CLOSED
from tests.protocols.stomp.test_stomp_connecting import refusal
from tests.step_store import StepStore

COUNT = 3000

#: Checks in a turn: five readings of the clock of a millisecond each, with 64 actions before each.
MOST_IN_A_TURN = 6 * 64


@pytest.fixture
def clock() -> TurnClock:
    return TurnClock()


@pytest.fixture
def store() -> StepStore:
    return StepStore()


@pytest.fixture
def gateway(clock: TurnClock, store: StepStore) -> Gateway:
    return Gateway(clock=clock, store=store, max_transaction_actions=2 * COUNT, max_transaction_size=100_000_000)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Head]:
    """The checked SENDs, of which ``clear`` forgets those of earlier turns."""
    checked: list[Head] = []
    check = Publishing.check

    def counted(self: Publishing, head: Head) -> Target:
        checked.append(head)
        return check(self, head)

    monkeypatch.setattr(Publishing, "check", counted)
    return checked


def held(gateway: Gateway, count: int = COUNT, **login: str) -> Client:
    """Return a client with a transaction of SENDs to the queue ``q``."""
    client = gateway.client(**login)
    client.command("BEGIN", transaction="t")
    for number in range(count):
        client.io.take(
            frame("SEND", {"destination": "/queue/q", "transaction": "t", "persistent": "true"}, b"%d" % number)
        )
        gateway.end_turn()
    run(gateway)
    return client


def run(gateway: Gateway) -> None:
    """Run all turns."""
    clock = gateway.fake_clock
    assert isinstance(clock, TurnClock)
    gateway.settle()
    while clock.turn():
        gateway.settle()


def commit(gateway: Gateway, client: Client) -> None:
    """Send COMMIT, and run one turn."""
    client.io.take(frame("COMMIT", {"transaction": "t", "receipt": "r"}))
    gateway.end_turn()


def length(gateway: Gateway) -> int:
    queue = gateway.vhost.queue_by_name.get("q")
    return 0 if queue is None else len(queue)


def test_a_turn_checks_a_bounded_number_of_sends(
    gateway: Gateway, clock: TurnClock, checks: list[Head], store: StepStore
) -> None:
    client = held(gateway)
    checks.clear()
    store.sizes.clear()
    commit(gateway, client)
    turns = []
    while checks:
        turns.append(len(checks))
        assert length(gateway) == 0
        checks.clear()
        clock.turn()
        gateway.end_turn()
    assert sum(turns) == COUNT
    assert max(turns) <= MOST_IN_A_TURN
    run(gateway)
    assert client.receive_frames() == [receipt("r")]
    assert length(gateway) == COUNT
    assert [size for size in store.sizes if size > 10] == [2 * COUNT]


def test_frames_behind_a_long_commit_wait_for_it(gateway: Gateway) -> None:
    client = held(gateway)
    commit(gateway, client)
    client.io.take(frame("SEND", {"destination": "/queue/q", "receipt": "after"}, b"after"))
    gateway.end_turn()
    assert length(gateway) == 0
    run(gateway)
    gateway.turn.go_on()
    assert client.receive_frames() == [receipt("r"), receipt("after")]
    assert length(gateway) == COUNT + 1


def test_nothing_is_published_if_a_late_check_fails(gateway: Gateway) -> None:
    gateway.vhost.declare_exchange("x", "fanout", is_durable=True)
    client = held(gateway)
    assert client.command("SEND", transaction="t", destination="/exchange/x") == []
    gateway.vhost.delete_exchange("x")
    commit(gateway, client)
    run(gateway)
    error, closed = client.receive_frames()
    assert (error["message"], error["receipt-id"], closed) == ("not_found", "r", CLOSED)
    assert length(gateway) == 0
    assert not len(gateway.fake_clock.background)


def test_what_was_checked_is_published_although_the_permission_is_revoked_meanwhile(
    gateway: Gateway, clock: TurnClock, checks: list[Head]
) -> None:
    gateway.add_user("ann", "secret")
    client = held(gateway, login="ann", passcode="secret")
    checks.clear()
    commit(gateway, client)
    while len(checks) < COUNT:
        clock.turn()
        gateway.end_turn()
    assert length(gateway) == 0
    gateway.add_user("ann", "secret", ("", "", ""))
    run(gateway)
    assert client.receive_frames() == [receipt("r")]
    assert length(gateway) == COUNT


def test_a_permission_that_is_revoked_during_the_checks_refuses_the_whole_commit(gateway: Gateway) -> None:
    gateway.add_user("ann", "secret")
    client = held(gateway, login="ann", passcode="secret")
    commit(gateway, client)
    gateway.add_user("ann", "secret", ("", "", ""))
    run(gateway)
    assert refusal(client.receive_frames()) == "access_refused"
    assert length(gateway) == 0


@pytest.mark.parametrize("end", ["lost connection", "forced close"])
def test_a_client_that_leaves_during_the_checks_publishes_nothing(
    gateway: Gateway, end: str, checks: list[Head]
) -> None:
    client = held(gateway)
    client.subscribe("/queue/in", ack="client-individual")
    gateway.publish("", "in", b"m")
    run(gateway)
    (message,) = client.receive_frames()
    client.settle("ACK", message, {"transaction": "t"})
    checks.clear()
    commit(gateway, client)
    if end == "lost connection":
        client.lose()
    else:
        client.machine.force_close("the end")
    run(gateway)
    assert len(checks) <= MOST_IN_A_TURN
    assert length(gateway) == 0
    assert len(gateway.vhost.queue("in")) == 1
    assert not len(gateway.fake_clock.background)


def test_a_commit_waits_for_a_permission_and_is_then_repeated(
    gateway: Gateway, clock: TurnClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = held(gateway)
    gateway.vhost.invalidate_caches()
    answered = PendingWork()
    check = Publishing.check
    asked: list[Head] = []

    def checked(self: Publishing, head: Head) -> Target:
        asked.append(head)
        if not answered.is_done:
            raise PermissionUnknown("exchange", answered)
        return check(self, head)

    monkeypatch.setattr(Publishing, "check", checked)
    commit(gateway, client)
    run(gateway)
    assert (client.receive_frames(), length(gateway)) == ([], 0)
    assert asked
    answered.finish()
    run(gateway)
    assert client.receive_frames() == [receipt("r")]
    assert length(gateway) == COUNT


def test_a_commit_waits_for_a_permission_that_is_found_unknown_in_a_later_turn(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = held(gateway)
    client.command("SEND", transaction="t", destination="/exchange/amq.fanout")
    gateway.vhost.invalidate_caches()
    answered = PendingWork()
    check = Publishing.check

    def checked(self: Publishing, head: Head) -> Target:
        if "amq.fanout" in head.headers["destination"] and not answered.is_done:
            raise PermissionUnknown("exchange", answered)
        return check(self, head)

    monkeypatch.setattr(Publishing, "check", checked)
    commit(gateway, client)
    run(gateway)
    assert (client.receive_frames(), length(gateway)) == ([], 0)
    answered.finish()
    run(gateway)
    assert client.receive_frames() == [receipt("r")]
    assert length(gateway) == COUNT
