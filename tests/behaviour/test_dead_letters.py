"""Dropped messages are published again, with the death in their headers (R100-R114).

Rules: R25.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.kernel.events import Event
from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from tests.behaviour.scenario import AmqpClient, Scenario, second_of
from tests.protocols.amqp.frames import publish

TO_DEAD: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def reject_a_message(scenario: Scenario) -> None:
    scenario.publish(b"m")
    scenario.reject()


def expire_a_message(scenario: Scenario) -> None:
    scenario.publish(b"m", expiration="10")
    scenario.advance(10)


def exceed_the_length_limit(scenario: Scenario) -> None:
    scenario.policy({"max-length": 1}, pattern="^q$")
    scenario.publish(b"m", b"n")


def exceed_the_byte_limit(scenario: Scenario) -> None:
    scenario.policy({"max-length-bytes": 1}, pattern="^q$")
    scenario.publish(b"m", b"n")


def exceed_the_delivery_limit(scenario: Scenario) -> None:
    scenario.policy({"delivery-limit": 0}, pattern="^q$")
    scenario.publish(b"m")
    scenario.requeue()


DEATHS = [
    pytest.param(reject_a_message, "rejected", id="R100: rejected"),
    pytest.param(expire_a_message, "expired", id="R100: expired"),
    pytest.param(exceed_the_length_limit, "maxlen", id="R100: maxlen"),
    pytest.param(exceed_the_byte_limit, "maxlen", id="R100: maxlen by bytes"),
    pytest.param(exceed_the_delivery_limit, "delivery_limit", id="R100: delivery_limit"),
]


@pytest.mark.parametrize(("drop", "reason"), DEATHS)
def test_every_death_is_recorded(scenario: Scenario, drop: Callable[[Scenario], None], reason: str) -> None:
    scenario.queue("dead")
    scenario.queue("q", TO_DEAD)
    drop(scenario)
    (letter,) = scenario.drain("dead")
    assert (letter.body, letter.exchange, letter.routing_key) == (b"m", "", "dead")
    assert letter.died == [("q", reason, 1)]


def test_r108_an_entry_contains_all_fields(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", TO_DEAD)
    scenario.publish(b"m", expiration="60000", headers={"CC": ["cc"], "BCC": ["bcc"], "k": 1})
    scenario.reject()
    (letter,) = scenario.drain("dead")
    assert list(letter.deaths[0].items()) == [
        ("count", 1),
        ("reason", "rejected"),
        ("queue", "q"),
        ("time", datetime.fromtimestamp(scenario.now_s, UTC)),
        ("exchange", ""),
        ("routing-keys", ["q", "cc"]),
        ("original-expiration", "60000"),
    ]


def test_r107_deaths_in_one_queue_for_one_reason_are_counted_and_the_newest_comes_first(scenario: Scenario) -> None:
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r"})
    scenario.queue("r", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    scenario.publish(b"m")
    scenario.reject("q")
    first = scenario.get("r")
    first_death_s = second_of(first.deaths[0]["time"])
    scenario.advance(5000)
    scenario.client.settle(first, DeliveryOutcome.REJECTED)
    assert scenario.get("q").died == [("r", "rejected", 1), ("q", "rejected", 1)]
    scenario.client.leave()
    scenario.client = type(scenario.client)(scenario.gateway)
    scenario.reject("q")
    letter = scenario.get("r")
    assert letter.died == [("q", "rejected", 2), ("r", "rejected", 1)]
    assert second_of(letter.deaths[0]["time"]) == first_death_s, "R108: the time is that of the first death"
    assert letter.deaths[0]["exchange"] == "", "R108: so is the exchange"
    assert letter.deaths[0]["routing-keys"] == ["q"], "R108: and the keys"


def test_r107_each_reason_has_its_own_entry(scenario: Scenario) -> None:
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r"})
    scenario.queue("r", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 10})
    scenario.publish(b"m")
    scenario.reject("q")
    scenario.advance(10)
    scenario.reject("q")
    assert scenario.get("r").died == [("q", "rejected", 2), ("r", "expired", 1)]


def test_messages_that_die_in_one_turn_keep_what_is_their_own() -> None:
    scenario = Scenario(AmqpClient)
    scenario.queue("dead")
    scenario.queue("q", TO_DEAD)
    scenario.exchange("x", "fanout", "q")
    scenario.publish(b"1", headers={"n": "1"})
    scenario.publish(b"2", headers={"n": "2"})
    scenario.publish(b"3", exchange="x", to="k", headers={"n": "3"})
    scenario.publish(b"4", expiration="60000")
    scenario.publish(b"5", headers={"x-death": "forged", "x-first-death-queue": "forged"})
    scenario.publish(b"6", headers={"n": "6"})
    scenario.publish(b"7")
    scenario.policy({"max-length": 0}, pattern="^q$")
    letters = scenario.drain("dead")
    assert [letter.body for letter in letters] == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]
    assert [letter.headers.get("n") for letter in letters] == ["1", "2", "3", None, None, "6", None]
    assert [letter.died for letter in letters] == [[("q", "maxlen", 1)]] * 7
    assert [letter.deaths[0]["exchange"] for letter in letters] == ["", "", "x", "", "", "", ""]
    assert [letter.deaths[0]["routing-keys"] for letter in letters] == [["q"], ["q"], ["k"], ["q"], ["q"], ["q"], ["q"]]
    assert ["original-expiration" in letter.deaths[0] for letter in letters] == [number == 4 for number in range(1, 8)]
    assert [letter.headers["x-first-death-queue"] for letter in letters] == ["q"] * 7


def test_r110_first_and_last_death_are_in_the_headers(scenario: Scenario) -> None:
    scenario.queue("q", {"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "r"})
    scenario.queue("r", {**TO_DEAD, "x-message-ttl": 10})
    scenario.queue("dead")
    scenario.exchange("x", "direct", "r")
    scenario.publish(b"m")
    scenario.reject("q")
    scenario.advance(10)
    headers = scenario.get("dead").headers
    assert {name: headers[name] for name in headers if name != "x-death"} == {
        "x-first-death-reason": "rejected",
        "x-first-death-queue": "q",
        "x-first-death-exchange": "",
        "x-last-death-reason": "expired",
        "x-last-death-queue": "r",
        "x-last-death-exchange": "x",
    }


def test_r109_a_dead_letter_has_no_expiration(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", TO_DEAD)
    scenario.publish(b"m", expiration="10")
    scenario.advance(10)
    scenario.advance(10_000)
    assert "expiration" not in scenario.get("dead").properties


def test_r105_without_a_dead_letter_routing_key_the_original_keys_are_used(scenario: Scenario) -> None:
    for name in ("one", "two", "three"):
        scenario.queue(name)
    scenario.exchange("x", "direct", "one", "two", "three")
    scenario.queue("q", {"x-dead-letter-exchange": "x"})
    scenario.exchange("in", "direct")
    scenario.vhost.bind(scenario.vhost.exchange("in"), scenario.vhost.queue("q"), "one")
    scenario.publish(b"m", to="one", exchange="in", headers={"CC": ["two"], "BCC": ["three"]})
    scenario.reject()
    letters = [scenario.drain(name) for name in ("one", "two", "three")]
    assert [[letter.routing_key for letter in drained] for drained in letters] == [["one"], ["one"], ["one"]]
    assert letters[0][0].headers["CC"] == ["two"], "R106: CC is kept"
    assert "BCC" not in letters[0][0].headers, "R106: BCC is removed"


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["paged out", "recovered"])
def test_r106_cc_and_bcc_are_kept_for_a_paged_message(scenario: Scenario, delivery_mode: int) -> None:
    for name in ("seen", "hidden"):
        scenario.queue(name)
    scenario.exchange("x", "direct", "seen", "hidden")
    scenario.queue("q", {"x-dead-letter-exchange": "x"})
    scenario.exchange("in", "direct", "q")
    others = [b"%d" % number for number in range(3000)]
    scenario.publish(*others, delivery_mode=delivery_mode)
    copies = {"CC": ["seen"], "BCC": ["hidden"]}
    scenario.publish(b"m", to="q", exchange="in", delivery_mode=delivery_mode, headers=copies)
    if delivery_mode == 2:
        scenario.restart()
    else:
        scenario.publish(*others, delivery_mode=delivery_mode)
    assert scenario.vhost.queue("q").ready.length > 3000
    while (received := scenario.get()).body != b"m":
        scenario.client.settle(received, DeliveryOutcome.ACCEPTED)
    assert "BCC" not in received.headers
    scenario.client.settle(received, DeliveryOutcome.REJECTED)
    if delivery_mode == 2:
        scenario.restart()
    (seen,), (hidden,) = scenario.drain("seen"), scenario.drain("hidden")
    assert (seen.body, hidden.body) == (b"m", b"m")
    assert hidden.headers["CC"] == ["seen"]
    assert "BCC" not in hidden.headers
    assert hidden.deaths[0]["routing-keys"] == ["q", "seen"]


def test_r106_a_dead_letter_routing_key_replaces_cc_and_bcc(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("two")
    scenario.queue("q", TO_DEAD)
    scenario.exchange("in", "fanout", "q")
    scenario.publish(b"m", exchange="in", headers={"CC": ["two"], "BCC": ["two"]})
    scenario.reject()
    (letter,) = scenario.drain("dead")
    assert "CC" not in letter.headers
    assert letter.deaths[0]["routing-keys"] == ["q", "two"]
    assert scenario.ready("two") == 0


def test_r111_a_message_that_expires_in_a_cycle_is_dropped_where_the_cycle_closes(scenario: Scenario) -> None:
    events: list[Event] = []
    scenario.gateway.broker.events.subscribe(events.append)
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r", "x-message-ttl": 10})
    scenario.queue("r", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 10})
    scenario.publish(b"m", b"n")
    scenario.advance(100)
    assert (scenario.ready("q"), scenario.ready("r")) == (0, 0)
    assert [event.subject for event in events if event.name == "dead_letter.cycle"] == ["q"]


def test_r111_only_the_queue_that_closes_the_cycle_gets_no_message(scenario: Scenario) -> None:
    scenario.queue("q", {"x-dead-letter-exchange": "x", "x-message-ttl": 10})
    scenario.queue("other")
    scenario.exchange("x", "fanout", "q", "other")
    scenario.publish(b"m")
    scenario.advance(10)
    assert (scenario.ready("q"), scenario.ready("other")) == (0, 1)


def test_r111_a_rejection_by_a_consumer_breaks_the_cycle(scenario: Scenario) -> None:
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"})
    scenario.queue("wait", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 10})
    scenario.publish(b"m")
    for tries in (1, 2, 3):
        scenario.reject("q")
        scenario.advance(10)
        assert scenario.vhost.queue("q").ready.length == 1
        received = scenario.get("q")
        assert received.died == [("wait", "expired", tries), ("q", "rejected", tries)]
        scenario.client.settle(received, DeliveryOutcome.REQUEUED)


def test_r103_without_the_exchange_the_message_is_dropped(scenario: Scenario) -> None:
    scenario.queue("q", {"x-dead-letter-exchange": "nowhere"})
    scenario.publish(b"m")
    scenario.reject()
    assert scenario.ready() == 0


def test_r103_the_exchange_may_be_declared_later(scenario: Scenario) -> None:
    scenario.queue("q", {"x-dead-letter-exchange": "later"})
    scenario.queue("dead")
    scenario.publish(b"m")
    scenario.exchange("later", "fanout", "dead")
    scenario.reject()
    assert scenario.bodies("dead") == [b"m"]


def test_r103_an_unroutable_dead_letter_goes_to_the_alternate_exchange(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.exchange("beside", "fanout", "dead")
    scenario.exchange("x", "direct", alternate_exchange="beside")
    scenario.queue("q", {"x-dead-letter-exchange": "x"})
    scenario.publish(b"m")
    scenario.reject()
    (letter,) = scenario.drain("dead")
    assert (letter.exchange, letter.routing_key) == ("x", "q")


@pytest.mark.parametrize("type", ["direct", "topic", "fanout", "headers"])
def test_r102_the_exchange_may_be_of_any_type(scenario: Scenario, type: str) -> None:
    scenario.queue("dead")
    scenario.exchange("x", type, "dead")
    scenario.queue("q", {"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "dead"})
    scenario.publish(b"m")
    scenario.reject()
    assert scenario.bodies("dead") == [b"m"]


def test_r101_the_argument_takes_precedence_over_the_policy(scenario: Scenario) -> None:
    for name in ("dead", "other"):
        scenario.queue(name)
    scenario.queue("q", TO_DEAD)
    scenario.policy({"dead-letter-exchange": "", "dead-letter-routing-key": "other"}, pattern="^q$")
    scenario.publish(b"m")
    scenario.reject()
    assert (scenario.ready("dead"), scenario.ready("other")) == (1, 0)


def test_r101_a_policy_enables_dead_lettering(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q")
    scenario.publish(b"m")
    scenario.policy({"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}, pattern="^q$")
    scenario.reject()
    assert scenario.bodies("dead") == [b"m"]


def test_r114_all_other_properties_are_unchanged(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", TO_DEAD)
    published: dict[str, Any] = {  # Any: each property of its own type
        "content_type": "text/plain",
        "delivery_mode": 2,
        "priority": 3,
        "correlation_id": "c",
        "reply_to": "r",
        "message_id": "m",
        "timestamp": datetime(2026, 1, 2, tzinfo=UTC),
        "type": "t",
        "user_id": "guest",
        "app_id": "a",
    }
    scenario.publish(b"m", headers={"k": [1, {"n": True}]}, **published)
    scenario.reject()
    (letter,) = scenario.drain("dead")
    assert {name: letter.properties[name] for name in published} == published
    assert letter.headers["k"] == [1, {"n": True}]


def test_r39_purging_and_deleting_dead_letter_nothing(scenario: Scenario) -> None:
    scenario.queue("dead")
    queue = scenario.queue("q", {**TO_DEAD, "x-expires": 1000})
    scenario.publish(b"m")
    queue.drops.purge()
    scenario.publish(b"m")
    scenario.advance(1000)
    assert "q" not in scenario.vhost.queue_by_name
    scenario.vhost.delete_queue(scenario.queue("q", TO_DEAD))
    assert scenario.ready("dead") == 0


def test_forged_death_headers_are_ignored(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", {**TO_DEAD, "x-message-ttl": 0})
    for forged in ("x", [1, "x"], [{"queue": 5, "count": "many"}], {"a": 1}, None):
        scenario.publish(b"m", headers={"x-death": forged})
        newest = scenario.get("dead").deaths[0]
        assert (newest["queue"], newest["reason"], newest["count"]) == ("q", "expired", 1)


def test_r111_a_cycle_with_a_client_in_it_is_not_broken(scenario: Scenario) -> None:
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r", "x-message-ttl": 10})
    scenario.queue("r")
    forged: Value = ["a client was here", {"queue": "r", "reason": "expired"}]
    scenario.publish(b"m", headers={"x-death": forged})
    scenario.advance(10)
    assert scenario.bodies("r") == [b"m"]


def test_a_chain_of_dead_letter_queues_may_have_any_length(scenario: Scenario) -> None:
    for number in range(250):
        arguments: dict[str, Value] = {
            "x-max-length": 0,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": f"q{number + 1}",
        }
        scenario.queue(f"q{number}", arguments)
    scenario.queue("q250")
    for number in range(2):
        scenario.publish(b"%d" % number, to="q0")
    assert scenario.bodies("q250") == [b"0", b"1"]


def test_dropping_and_dead_lettering_are_one_step_of_the_store(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", TO_DEAD)
    scenario.publish(b"m", delivery_mode=2)
    scenario.reject()
    scenario.restart()
    assert (scenario.ready("q"), [letter.died for letter in scenario.drain("dead")]) == (0, [[("q", "rejected", 1)]])


@pytest.mark.parametrize("limit", [{"x-message-ttl": 0}, {"x-max-length": 0}], ids=["expired", "maxlen"])
def test_a_message_dropped_on_arrival_is_confirmed_when_its_dead_letter_is_durable(limit: dict[str, Value]) -> None:
    scenario = Scenario(AmqpClient)
    scenario.queue("dead")
    scenario.queue("q", {**TO_DEAD, **limit})
    scenario.gateway.settle()
    peer = scenario.client.peer
    peer.send(publish("", "q", b"m", delivery_mode=2))
    assert peer.receive_now() == []
    assert peer.receive() == ["Basic.Ack(delivery_tag=1, multiple=False)"]


@pytest.mark.parametrize("is_first", [True, False])
def test_keys_of_a_message_that_a_plugin_has_edited_are_not_those_of_another(
    scenario: Scenario, is_first: bool
) -> None:
    """The edited message has the header CC, but no further keys that route it (R106)."""
    scenario.queue("dead")
    scenario.queue("q", TO_DEAD)
    vhost = scenario.gateway.vhost
    header = native_header(Properties(headers={"n": 1}))
    plain = Message("", "q", header, b"plain")
    edited = Message("", "q", header, b"edited").edited({"CC": ["c"]})
    for message in (edited, plain) if is_first else (plain, edited):
        vhost.publish(vhost.default_exchange, message)
    scenario.policy({"max-length": 0}, pattern="^q$")
    keys = {letter.body: letter.deaths[0]["routing-keys"] for letter in scenario.drain("dead")}
    assert keys == {b"edited": ["q", "c"], b"plain": ["q"]}
