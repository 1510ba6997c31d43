"""The model of the messages: each promise is noticed when it is broken."""

from collections.abc import Callable

import pytest

from gateway.simulation.findings import Findings
from gateway.simulation.history import MessageHistory, MessagePlace
from gateway.simulation.publishes import Fate
from gateway.simulation.world.world import World


class Told:
    """A history with two places, to which the tests tell what happened."""

    def __init__(self) -> None:
        self.findings = Findings(World(0))
        self.history = MessageHistory(self.findings)
        self.history.add_place(MessagePlace("q"))
        self.history.add_place(MessagePlace("session", qos=2, keeps_transient=False))

    def publish(self, *places: str, qos: int = 1, fate: Fate = Fate.CONFIRMED, group: int = 0) -> str:
        body = self.history.publish("p", places, qos=qos, group=group)
        self.history.decided(body, fate)
        return body

    def receive(self, name: str, body: str, *, again: bool = False) -> None:
        self.history.received(name, "r", body, is_redelivered=again, removes=True)

    @property
    def rules(self) -> list[str]:
        return [finding.rule for finding in self.findings.found]


def unknown(told: Told) -> None:
    told.receive("q", "p:7")


def elsewhere(told: Told) -> None:
    told.receive("q", told.publish("session"))


def rolled_back(told: Told) -> None:
    told.receive("q", told.publish("q", fate=Fate.ROLLED_BACK))


def refused(told: Told) -> None:
    told.receive("q", told.publish("q", fate=Fate.REFUSED))


def unowed_will(told: Told) -> None:
    body = told.publish("q", fate=Fate.UNKNOWN)
    told.receive("q", body)
    told.history.decided(body, Fate.WITHHELD)


def late_unowed_will(told: Told) -> None:
    told.receive("q", told.publish("q", fate=Fate.WITHHELD))


def acknowledged(told: Told) -> None:
    body = told.publish("q")
    told.receive("q", body)
    told.history.settled("q", [body])
    told.receive("q", body, again=True)


def acknowledged_for_ever(told: Told) -> None:
    body = told.publish("q")
    told.receive("q", body)
    told.history.settled("q", [body], for_ever=True)
    told.history.kills += 1
    told.receive("q", body, again=True)


def unmarked(told: Told) -> None:
    body = told.publish("q")
    told.receive("q", body)
    told.receive("q", body)


def of_another_type(told: Told) -> None:
    told.history.check_properties("r", told.publish("q"), "text/html", None)


def no_longer_durable(told: Told) -> None:
    told.history.check_properties("r", told.publish("q"), None, False)


def disordered(told: Told) -> None:
    first, second = told.publish("q"), told.publish("q")
    told.receive("q", second)
    told.receive("q", first)


def twice(told: Told) -> None:
    body = told.publish("session", qos=2)
    told.receive("session", body)
    told.history.incarnation += 1
    told.history.kills += 1
    told.receive("session", body, again=True)


def twice_at_most_once(told: Told) -> None:
    body = told.publish("session", qos=0)
    told.receive("session", body)
    told.history.incarnation += 1
    told.receive("session", body)


def lost(told: Told) -> None:
    told.publish("q")
    told.history.check_losses(has_restarted=False)


def lost_in_a_restart(told: Told) -> None:
    told.publish("session")
    told.history.check_losses(has_restarted=True)


def half_a_transaction(told: Told) -> None:
    there, _ = (told.publish("q", fate=Fate.UNKNOWN, group=1) for _ in range(2))
    told.receive("q", there)
    told.history.check_transactions()


BROKEN = {
    unknown: "only what was published is delivered",
    elsewhere: "a message goes where it is routed",
    rolled_back: "a transaction that was rolled back has no effect",
    refused: "a refused message is not delivered",
    unowed_will: "a will that is not owed is not published",
    late_unowed_will: "a will that is not owed is not published",
    acknowledged: "an acknowledged message does not come again",
    acknowledged_for_ever: "an acknowledged message does not come again",
    unmarked: "a second delivery is marked as one",
    of_another_type: "a message keeps its properties",
    no_longer_durable: "a message keeps its properties",
    disordered: "messages of a publisher come in its order",
    twice: "a message of QoS 2 comes once",
    twice_at_most_once: "a message of QoS 0 comes once",
    lost: "a confirmed message is not lost",
    lost_in_a_restart: "a confirmed message is not lost",
    half_a_transaction: "a transaction is whole",
}


@pytest.mark.parametrize(("happen", "rule"), BROKEN.items(), ids=lambda each: getattr(each, "__name__", None))
def test_a_broken_promise_is_found(happen: Callable[[Told], None], rule: str) -> None:
    told = Told()
    happen(told)
    assert rule in told.rules


def test_what_is_permitted_is_no_finding() -> None:
    told = Told()
    first, second = told.publish("q", "session"), told.publish("q")
    for body in (first, second):
        told.receive("q", body)
    told.receive("q", second, again=True)
    told.receive("session", first)
    told.history.check_properties("r", first, None, True)
    told.history.check_properties("a client of MQTT", first, None, None)
    told.publish("session", qos=0, fate=Fate.CONFIRMED)  # a transient message is not promised to a session
    told.publish("q", fate=Fate.UNKNOWN)
    told.history.check_losses(has_restarted=True)
    assert not told.rules


def test_an_acknowledgement_may_be_lost_in_a_kill_unless_a_receipt_says_that_it_is_on_disk() -> None:
    told = Told()
    body = told.publish("q")
    told.receive("q", body)
    told.history.settled("q", [body])
    told.history.kills += 1
    told.history.incarnation += 1
    told.receive("q", body, again=True)
    assert not told.rules


def test_a_publish_of_qos_1_that_was_repeated_may_come_twice() -> None:
    told = Told()
    body = told.publish("session")
    told.history.published[body].is_repeated = True
    told.receive("session", body)
    told.history.settled("session", [body])
    told.receive("session", body)
    assert not told.rules


def test_a_repeated_publish_of_qos_2_may_come_twice_at_qos_0_after_the_node_ended() -> None:
    told = Told()
    told.history.places["session"].qos = 0
    body = told.publish("session", qos=2, fate=Fate.UNKNOWN)
    told.receive("session", body)
    told.history.incarnation += 1
    told.history.published[body].is_resent = True
    told.history.received("session", "the reader's next connection", body, is_redelivered=False)
    assert not told.rules


def test_a_repeated_publish_of_qos_2_may_come_twice_to_a_session_that_ends_with_the_node() -> None:
    told = Told()
    told.history.places["session"].survives = False
    body = told.publish("session", qos=2, fate=Fate.UNKNOWN)
    told.receive("session", body)
    told.history.incarnation += 1
    told.history.published[body].is_resent = True
    told.history.received("session", "the reader's next connection", body, is_redelivered=False)
    assert not told.rules


def test_a_marked_delivery_may_come_before_the_first_one_over_a_slower_connection() -> None:
    told = Told()
    body = told.publish("q")
    told.receive("q", body, again=True)
    told.receive("q", body)
    assert not told.rules


def test_a_removed_retained_value_has_no_body() -> None:
    told = Told()
    told.receive("q", "")
    assert not told.rules
