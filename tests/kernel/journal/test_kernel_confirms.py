"""Publisher confirms: in order, once for each message, and never before it is safe (R119-R121)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.vhosts.verdict import Verdict
from gateway.testing import MemoryBroker, Recipient
from tests.effort import examples

Answer = tuple[int, bool, bool]


class Publisher:
    """Publishes to the durable queue ``q`` and collects the confirms."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.answers: list[Answer] = []
        self._broker = broker
        self.confirms = Confirms(broker.kernel.journal, lambda *answer: self.answers.append(answer))

    def publish(self, *, is_persistent: bool = True, is_refused: bool = False) -> None:
        verdict = self._broker.publish("q", b"body", is_persistent=is_persistent)
        self.confirms.published(verdict is not Verdict.REFUSED and not is_refused)

    def end_turn(self) -> None:
        self._broker.end_turn()

    @property
    def answered(self) -> list[tuple[int, bool]]:
        """The message numbers with their outcomes, one for each message, as a client interprets the confirms."""
        read: list[tuple[int, bool]] = []
        for number, is_multiple, is_accepted in self.answers:
            first = len(read) + 1 if is_multiple else number
            read += [(each, is_accepted) for each in range(first, number + 1)]
        return read


def publisher_to(broker: MemoryBroker) -> Publisher:
    broker.vhost.declare_queue("q", is_durable=True)
    broker.commit()
    return Publisher(broker)


def test_a_persistent_message_is_confirmed_when_it_is_durable_and_not_before(broker: MemoryBroker) -> None:
    """R119."""
    publisher = publisher_to(broker)
    publisher.publish()
    assert publisher.answers == []
    publisher.end_turn()
    assert publisher.answers == []
    broker.store.commit()
    assert publisher.answers == [(1, False, True)]


def test_a_message_that_needs_no_store_is_confirmed_at_the_end_of_the_turn(broker: MemoryBroker) -> None:
    """R119."""
    publisher = publisher_to(broker)
    publisher.publish(is_persistent=False)
    assert publisher.answers == []
    publisher.end_turn()
    assert publisher.answers == [(1, False, True)]


def test_an_unroutable_message_is_confirmed_at_the_end_of_the_turn(broker: MemoryBroker) -> None:
    """R119, R20."""
    publisher = Publisher(broker)
    broker.commit()
    publisher.publish()
    publisher.end_turn()
    assert publisher.answers == [(1, False, True)]


def test_dead_letters_of_a_new_policy_delay_no_confirm(broker: MemoryBroker) -> None:
    """R119, R56: the messages that a policy lets expire are not of the turn's publishers."""
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    broker.vhost.declare_queue("dead", is_durable=True)
    broker.vhost.declare_queue("old", is_durable=True, arguments=arguments)
    broker.publish("old", b"expires", is_persistent=True)
    publisher = publisher_to(broker)
    broker.advance(1)
    broker.kernel.put_policy(PolicyRecord("/", "short", False, "^old$", "queues", 0, {"message-ttl": 1}))
    assert len(broker.vhost.queue_by_name["dead"]) == 1
    publisher.confirms.published(True, is_stored=False)
    publisher.end_turn()
    assert publisher.answers == [(1, False, True)]


def test_the_messages_of_a_turn_are_confirmed_together(broker: MemoryBroker) -> None:
    """R121."""
    publisher = publisher_to(broker)
    for _ in range(5):
        publisher.publish()
    publisher.end_turn()
    broker.store.commit()
    assert publisher.answers == [(5, True, True)]


def test_a_transient_message_is_confirmed_after_an_earlier_persistent_one(broker: MemoryBroker) -> None:
    publisher = publisher_to(broker)
    publisher.publish()
    publisher.end_turn()
    publisher.publish(is_persistent=False)
    publisher.end_turn()
    assert publisher.answers == []
    broker.store.commit()
    assert publisher.answered == [(1, True), (2, True)]


def test_a_refused_message_gets_a_nack_of_its_own_in_order(broker: MemoryBroker) -> None:
    """R120."""
    publisher = publisher_to(broker)
    for is_refused in (False, False, True, False):
        publisher.publish(is_refused=is_refused)
    publisher.end_turn()
    broker.store.commit()
    assert publisher.answers == [(2, True, True), (3, False, False), (4, False, True)]


def test_pending_messages_are_nacked_when_the_store_fails(broker: MemoryBroker) -> None:
    """R120."""
    publisher = publisher_to(broker)
    publisher.publish()
    publisher.end_turn()
    broker.store.commit()
    publisher.publish()
    publisher.end_turn()
    publisher.publish()
    publisher.confirms.fail()
    publisher.end_turn()
    broker.store.commit()
    assert publisher.answers == [(1, False, True), (2, False, False), (3, False, False)]


def test_a_disconnected_publisher_gets_no_confirms(broker: MemoryBroker) -> None:
    publisher = publisher_to(broker)
    publisher.publish()
    publisher.publish(is_refused=True)
    publisher.end_turn()
    publisher.confirms.abandon()
    broker.store.commit()
    assert publisher.answers == []


def test_a_confirm_depends_only_on_turns_of_its_publisher(broker: MemoryBroker) -> None:
    first, second = publisher_to(broker), Publisher(broker)
    first.publish()
    first.end_turn()
    broker.store.commit()
    second.publish()
    second.end_turn()
    assert (len(first.answers), len(second.answers)) == (1, 0)


def test_numbers_count_from_one_for_each_publisher(broker: MemoryBroker) -> None:
    """R119."""
    first, second = publisher_to(broker), Publisher(broker)
    assert [first.confirms.published(True), first.confirms.published(True), second.confirms.published(True)] == [
        1,
        2,
        1,
    ]


KINDS = ("persistent", "transient", "refused")


@settings(max_examples=examples(100))
@given(steps=st.lists(st.sampled_from([*KINDS, "end", "commit"]), max_size=40))
def test_every_message_is_confirmed_once_in_order_and_not_too_early(steps: list[str]) -> None:
    broker = MemoryBroker()
    publisher = publisher_to(broker)
    published: list[str] = []
    ended = durable = 0
    for step in [*steps, "end", "commit"]:
        match step:
            case "end":
                publisher.end_turn()
                ended = len(published)
            case "commit":
                broker.store.commit()
                durable = ended
            case kind:
                publisher.publish(is_persistent=kind == "persistent", is_refused=kind == "refused")
                published.append(kind)
        expected = [(number, kind != "refused") for number, kind in enumerate(published, start=1)]
        assert publisher.answered == expected[: len(publisher.answered)]
        assert "persistent" not in published[durable : len(publisher.answered)]
    assert len(publisher.answered) == len(published)


def test_a_confirm_is_independent_of_consumers(broker: MemoryBroker) -> None:
    """R91: no consumer is needed for it, and settling sends no confirm."""
    publisher = publisher_to(broker)
    publisher.publish()
    publisher.end_turn()
    broker.store.commit()
    assert publisher.answers == [(1, False, True)]
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("q"))
    recipient.settle(1)
    publisher.end_turn()
    broker.commit()
    assert publisher.answers == [(1, False, True)]


def test_a_message_consumed_before_it_was_stored_is_confirmed(broker: MemoryBroker) -> None:
    """R119."""
    publisher = publisher_to(broker)
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("q"))
    publisher.publish()
    recipient.settle(1)
    publisher.end_turn()
    broker.store.commit()
    assert publisher.answers == [(1, False, True)]


def test_dead_letters_of_expired_messages_do_not_delay_confirms_of_other_publishers(broker: MemoryBroker) -> None:
    """R119: a message that needs no store is confirmed at the end of the turn, whatever else this turn stores."""
    arguments: dict[str, Value] = {
        "x-message-ttl": 1000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q",
    }
    broker.vhost.declare_queue("dying", is_durable=True, arguments=arguments)
    publisher = publisher_to(broker)
    for _ in range(100):
        broker.publish("dying", b"body", is_persistent=True)
    broker.commit()
    broker.clock.advance(2)
    assert len(broker.vhost.queue("q")) == 100, "dead letters, which this turn stores"
    publisher.confirms.published(is_accepted=True, is_stored=False)
    publisher.end_turn()
    assert publisher.answers == [(1, False, True)]


def test_a_message_that_expires_on_arrival_is_confirmed_once_its_dead_letter_is_durable(broker: MemoryBroker) -> None:
    """R119."""
    arguments: dict[str, Value] = {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    broker.vhost.declare_queue("dying", arguments=arguments)
    publisher = publisher_to(broker)
    broker.publish("dying", b"body", is_persistent=True)
    publisher.confirms.published(is_accepted=True, is_stored=False)
    publisher.end_turn()
    assert publisher.answers == []
    broker.store.commit()
    assert publisher.answers == [(1, False, True)]
