"""What a queue drops is published again, with its death on record (R100-R114).

Rules: R25.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.kernel.events import Event
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import AmqpEdge, Stage, second_of
from tests.protocols.amqp.frames import publish

TO_DEAD: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def dies_rejected(stage: Stage) -> None:
    stage.publish(b"m")
    stage.reject()


def dies_expired(stage: Stage) -> None:
    stage.publish(b"m", expiration="10")
    stage.advance(10)


def dies_of_length(stage: Stage) -> None:
    stage.policy({"max-length": 1}, pattern="^q$")
    stage.publish(b"m", b"n")


def dies_of_bytes(stage: Stage) -> None:
    stage.policy({"max-length-bytes": 1}, pattern="^q$")
    stage.publish(b"m", b"n")


def dies_of_tries(stage: Stage) -> None:
    stage.policy({"delivery-limit": 0}, pattern="^q$")
    stage.publish(b"m")
    stage.requeue()


DEATHS = [
    pytest.param(dies_rejected, "rejected", id="R100: rejected"),
    pytest.param(dies_expired, "expired", id="R100: expired"),
    pytest.param(dies_of_length, "maxlen", id="R100: maxlen"),
    pytest.param(dies_of_bytes, "maxlen", id="R100: maxlen by bytes"),
    pytest.param(dies_of_tries, "delivery_limit", id="R100: delivery_limit"),
]


@pytest.mark.parametrize(("die", "reason"), DEATHS)
def test_every_death_is_recorded(stage: Stage, die: Callable[[Stage], None], reason: str) -> None:
    stage.queue("dead")
    stage.queue("q", TO_DEAD)
    die(stage)
    (letter,) = stage.drain("dead")
    assert (letter.body, letter.exchange, letter.routing_key) == (b"m", "", "dead")
    assert letter.died == [("q", reason, 1)]


def test_r108_an_entry_contains_all_fields(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", TO_DEAD)
    stage.publish(b"m", expiration="60000", headers={"CC": ["elsewhere"], "BCC": ["secretly"], "k": 1})
    stage.reject()
    (letter,) = stage.drain("dead")
    assert list(letter.deaths[0].items()) == [
        ("count", 1),
        ("reason", "rejected"),
        ("queue", "q"),
        ("time", datetime.fromtimestamp(stage.now_s, UTC)),
        ("exchange", ""),
        ("routing-keys", ["q", "elsewhere"]),
        ("original-expiration", "60000"),
    ]


def test_r107_deaths_in_one_queue_for_one_reason_are_counted_and_the_newest_comes_first(stage: Stage) -> None:
    stage.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r"})
    stage.queue("r", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    stage.publish(b"m")
    stage.reject("q")
    first = stage.get("r")
    born = second_of(first.deaths[0]["time"])
    stage.advance(5000)
    stage.client.settle(first, DeliveryOutcome.REJECTED)
    assert stage.get("q").died == [("r", "rejected", 1), ("q", "rejected", 1)]
    stage.client.leave()
    stage.client = type(stage.client)(stage.gateway)
    stage.reject("q")
    letter = stage.get("r")
    assert letter.died == [("q", "rejected", 2), ("r", "rejected", 1)]
    assert second_of(letter.deaths[0]["time"]) == born, "R108: the time is that of the first death"
    assert letter.deaths[0]["exchange"] == "", "R108: so is the exchange"
    assert letter.deaths[0]["routing-keys"] == ["q"], "R108: and the keys"


def test_r107_each_reason_has_its_own_entry(stage: Stage) -> None:
    stage.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r"})
    stage.queue("r", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 10})
    stage.publish(b"m")
    stage.reject("q")
    stage.advance(10)
    stage.reject("q")
    assert stage.get("r").died == [("q", "rejected", 2), ("r", "expired", 1)]


def test_r110_first_and_last_death_are_in_the_headers(stage: Stage) -> None:
    stage.queue("q", {"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "r"})
    stage.queue("r", {**TO_DEAD, "x-message-ttl": 10})
    stage.queue("dead")
    stage.exchange("x", "direct", "r")
    stage.publish(b"m")
    stage.reject("q")
    stage.advance(10)
    headers = stage.get("dead").headers
    assert {name: headers[name] for name in headers if name != "x-death"} == {
        "x-first-death-reason": "rejected",
        "x-first-death-queue": "q",
        "x-first-death-exchange": "",
        "x-last-death-reason": "expired",
        "x-last-death-queue": "r",
        "x-last-death-exchange": "x",
    }


def test_r109_a_dead_letter_has_no_expiration(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", TO_DEAD)
    stage.publish(b"m", expiration="10")
    stage.advance(10)
    stage.advance(10_000)
    assert "expiration" not in stage.get("dead").properties


def test_r105_without_a_dead_letter_routing_key_the_original_keys_are_used(stage: Stage) -> None:
    for name in ("one", "two", "three"):
        stage.queue(name)
    stage.exchange("x", "direct", "one", "two", "three")
    stage.queue("q", {"x-dead-letter-exchange": "x"})
    stage.exchange("in", "direct")
    stage.vhost.bind(stage.vhost.exchange("in"), stage.vhost.queue("q"), "one")
    stage.publish(b"m", to="one", exchange="in", headers={"CC": ["two"], "BCC": ["three"]})
    stage.reject()
    letters = [stage.drain(name) for name in ("one", "two", "three")]
    assert [[letter.routing_key for letter in drained] for drained in letters] == [["one"], ["one"], ["one"]]
    assert letters[0][0].headers["CC"] == ["two"], "R106: CC stays"
    assert "BCC" not in letters[0][0].headers, "R106: BCC never shows"


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["paged out", "recovered"])
def test_r106_cc_and_bcc_are_kept_for_a_paged_message(stage: Stage, delivery_mode: int) -> None:
    for name in ("seen", "hidden"):
        stage.queue(name)
    stage.exchange("x", "direct", "seen", "hidden")
    stage.queue("q", {"x-dead-letter-exchange": "x"})
    stage.exchange("in", "direct", "q")
    others = [b"%d" % number for number in range(3000)]
    stage.publish(*others, delivery_mode=delivery_mode)
    copies = {"CC": ["seen"], "BCC": ["hidden"]}
    stage.publish(b"m", to="q", exchange="in", delivery_mode=delivery_mode, headers=copies)
    if delivery_mode == 2:
        stage.restart()
    else:
        stage.publish(*others, delivery_mode=delivery_mode)
    assert stage.vhost.queue("q").ready.length > 3000
    while (received := stage.get()).body != b"m":
        stage.client.settle(received, DeliveryOutcome.ACCEPTED)
    assert "BCC" not in received.headers
    stage.client.settle(received, DeliveryOutcome.REJECTED)
    if delivery_mode == 2:
        stage.restart()
    (seen,), (hidden,) = stage.drain("seen"), stage.drain("hidden")
    assert (seen.body, hidden.body) == (b"m", b"m")
    assert hidden.headers["CC"] == ["seen"]
    assert "BCC" not in hidden.headers
    assert hidden.deaths[0]["routing-keys"] == ["q", "seen"]


def test_r106_a_dead_letter_routing_key_replaces_cc_and_bcc(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("two")
    stage.queue("q", TO_DEAD)
    stage.exchange("in", "fanout", "q")
    stage.publish(b"m", exchange="in", headers={"CC": ["two"], "BCC": ["two"]})
    stage.reject()
    (letter,) = stage.drain("dead")
    assert "CC" not in letter.headers
    assert letter.deaths[0]["routing-keys"] == ["q", "two"]
    assert stage.ready("two") == 0


def test_r111_a_message_that_expires_in_a_cycle_is_dropped_where_the_cycle_closes(stage: Stage) -> None:
    events: list[Event] = []
    stage.gateway.broker.events.subscribe(events.append)
    stage.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r", "x-message-ttl": 10})
    stage.queue("r", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 10})
    stage.publish(b"m", b"n")
    stage.advance(100)
    assert (stage.ready("q"), stage.ready("r")) == (0, 0)
    assert [event.subject for event in events if event.name == "dead_letter.cycle"] == ["q"]


def test_r111_only_the_queue_that_closes_the_cycle_gets_no_message(stage: Stage) -> None:
    stage.queue("q", {"x-dead-letter-exchange": "x", "x-message-ttl": 10})
    stage.queue("other")
    stage.exchange("x", "fanout", "q", "other")
    stage.publish(b"m")
    stage.advance(10)
    assert (stage.ready("q"), stage.ready("other")) == (0, 1)


def test_r111_a_rejection_by_a_consumer_breaks_the_cycle(stage: Stage) -> None:
    stage.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"})
    stage.queue("wait", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 10})
    stage.publish(b"m")
    for tries in (1, 2, 3):
        stage.reject("q")
        stage.advance(10)
        assert stage.vhost.queue("q").ready.length == 1
        received = stage.get("q")
        assert received.died == [("wait", "expired", tries), ("q", "rejected", tries)]
        stage.client.settle(received, DeliveryOutcome.REQUEUED)


def test_r103_without_the_exchange_the_message_is_dropped(stage: Stage) -> None:
    stage.queue("q", {"x-dead-letter-exchange": "nowhere"})
    stage.publish(b"m")
    stage.reject()
    assert stage.ready() == 0


def test_r103_the_exchange_may_be_declared_later(stage: Stage) -> None:
    stage.queue("q", {"x-dead-letter-exchange": "later"})
    stage.queue("dead")
    stage.publish(b"m")
    stage.exchange("later", "fanout", "dead")
    stage.reject()
    assert stage.bodies("dead") == [b"m"]


def test_r103_an_unroutable_dead_letter_goes_to_the_alternate_exchange(stage: Stage) -> None:
    stage.queue("dead")
    stage.exchange("beside", "fanout", "dead")
    stage.exchange("x", "direct", alternate_exchange="beside")
    stage.queue("q", {"x-dead-letter-exchange": "x"})
    stage.publish(b"m")
    stage.reject()
    (letter,) = stage.drain("dead")
    assert (letter.exchange, letter.routing_key) == ("x", "q")


@pytest.mark.parametrize("type", ["direct", "topic", "fanout", "headers"])
def test_r102_the_exchange_may_be_of_any_type(stage: Stage, type: str) -> None:
    stage.queue("dead")
    stage.exchange("x", type, "dead")
    stage.queue("q", {"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "dead"})
    stage.publish(b"m")
    stage.reject()
    assert stage.bodies("dead") == [b"m"]


def test_r101_the_argument_takes_precedence_over_the_policy(stage: Stage) -> None:
    for name in ("dead", "other"):
        stage.queue(name)
    stage.queue("q", TO_DEAD)
    stage.policy({"dead-letter-exchange": "", "dead-letter-routing-key": "other"}, pattern="^q$")
    stage.publish(b"m")
    stage.reject()
    assert (stage.ready("dead"), stage.ready("other")) == (1, 0)


def test_r101_a_policy_enables_dead_lettering(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q")
    stage.publish(b"m")
    stage.policy({"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}, pattern="^q$")
    stage.reject()
    assert stage.bodies("dead") == [b"m"]


def test_r114_all_other_properties_are_unchanged(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", TO_DEAD)
    said: dict[str, Any] = {  # Any: each property of its own type
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
    stage.publish(b"m", headers={"k": [1, {"n": True}]}, **said)
    stage.reject()
    (letter,) = stage.drain("dead")
    assert {name: letter.properties[name] for name in said} == said
    assert letter.headers["k"] == [1, {"n": True}]


def test_r39_purging_and_deleting_dead_letter_nothing(stage: Stage) -> None:
    stage.queue("dead")
    queue = stage.queue("q", {**TO_DEAD, "x-expires": 1000})
    stage.publish(b"m")
    queue.purge()
    stage.publish(b"m")
    stage.advance(1000)
    assert "q" not in stage.vhost.queue_by_name
    stage.vhost.delete_queue(stage.queue("q", TO_DEAD))
    assert stage.ready("dead") == 0


def test_forged_death_headers_are_ignored(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", {**TO_DEAD, "x-message-ttl": 0})
    for forged in ("x", [1, "x"], [{"queue": 5, "count": "many"}], {"a": 1}, None):
        stage.publish(b"m", headers={"x-death": forged})
        newest = stage.get("dead").deaths[0]
        assert (newest["queue"], newest["reason"], newest["count"]) == ("q", "expired", 1)


def test_r111_a_cycle_with_a_client_in_it_is_not_broken(stage: Stage) -> None:
    stage.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r", "x-message-ttl": 10})
    stage.queue("r")
    forged: Value = ["a client was here", {"queue": "r", "reason": "expired"}]
    stage.publish(b"m", headers={"x-death": forged})
    stage.advance(10)
    assert stage.bodies("r") == [b"m"]


def test_a_chain_of_dead_letter_queues_may_have_any_length(stage: Stage) -> None:
    for number in range(250):
        arguments: dict[str, Value] = {
            "x-max-length": 0,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": f"q{number + 1}",
        }
        stage.queue(f"q{number}", arguments)
    stage.queue("q250")
    for number in range(2):
        stage.publish(b"%d" % number, to="q0")
    assert stage.bodies("q250") == [b"0", b"1"]


def test_dropping_and_dead_lettering_are_one_step_of_the_store(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", TO_DEAD)
    stage.publish(b"m", delivery_mode=2)
    stage.reject()
    stage.restart()
    assert (stage.ready("q"), [letter.died for letter in stage.drain("dead")]) == (0, [[("q", "rejected", 1)]])


@pytest.mark.parametrize("limit", [{"x-message-ttl": 0}, {"x-max-length": 0}], ids=["expired", "maxlen"])
def test_a_message_dropped_on_arrival_is_confirmed_when_its_dead_letter_is_durable(limit: dict[str, Value]) -> None:
    stage = Stage(AmqpEdge)
    stage.queue("dead")
    stage.queue("q", {**TO_DEAD, **limit})
    stage.gateway.settle()
    peer = stage.client.peer
    peer.send(publish("", "q", b"m", delivery_mode=2))
    assert peer.hear_now() == []
    assert peer.hear() == ["Basic.Ack(delivery_tag=1, multiple=False)"]
