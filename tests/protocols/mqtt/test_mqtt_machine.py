"""Delivery guarantees for random clients, with crashes of the broker at any time.

Three clients of both versions connect, disconnect, take over, subscribe alone and in groups, publish, and acknowledge
in any order, while the store commits at random times. ``client_model.py`` checks what each of them receives: QoS 2
exactly once, QoS 1 at least once, in order per topic and publisher, only expected messages, no reused identifier, and
nothing that a crash undoes.
"""

from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.kernel.journal.changes import Put
from tests.effort import examples
from tests.protocols.mqtt.client_model import ClientModel, Link
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.world import REJOIN_S, World

NAMES: Final = ("ann", "bob", "cyd")
FILTERS: Final = ("a/b", "a/+", "a/#", "+/b", "c")
GROUPS: Final = (("$share/g/g/1", "g/1", 2), ("$share/h/h/1", "h/1", 1))
TOPICS: Final = ("a/b", "a/c", "c", "g/1", "h/1")
WHO: Final = st.sampled_from(range(len(NAMES)))
PREFETCH: Final = 3


#: Parameters of a connection: version, clean start, whether the session outlives it, Receive Maximum.
MANNERS: Final = st.tuples(
    st.sampled_from([4, 5, 5]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([1, 2, 100]),
)


class MachineLink(Client):
    """A connection in this process. ``request`` returns after everything so far is durable."""

    def close(self) -> None:
        self.gateway.broker.connections.remove(self)
        self.machine.lost()


class MachineWorld(World):
    """Clients connected in process to a broker with the memory store."""

    def __init__(self) -> None:
        self.gateway = Gateway(prefetch=PREFETCH)
        super().__init__(NAMES, GROUPS, PREFETCH)

    def new_client(self, version: int) -> Link:
        return MachineLink(self.gateway, version)

    def commit(self) -> None:
        self.gateway.settle()
        self.absorb()

    def crash(self) -> None:
        """Crash the broker without its uncommitted data, and start it again."""
        self.gateway = self.gateway.crashed()
        self.gateway.advance(0)  # sessions that end with their connection are deleted now
        self.crashed()

    def wait(self, seconds: int) -> None:
        self.commit()
        self.gateway.advance(seconds)
        self.now_s += seconds
        for person in self.people:
            person.grow_older()
        self.absorb()


class MqttMachine(RuleBasedStateMachine):
    """Random clients, checked at every packet. ``has_news`` is true after a publish since the last crash."""

    def new_world(self) -> MachineWorld:
        return MachineWorld()

    @initialize(
        manners=st.tuples(MANNERS, MANNERS, MANNERS),
        wishes=st.tuples(*[st.dictionaries(st.sampled_from(FILTERS), st.integers(0, 2), max_size=2) for _ in NAMES]),
        joins=st.lists(st.tuples(WHO, st.sampled_from(GROUPS)), max_size=4),
    )
    def start(
        self,
        manners: tuple[tuple[int, bool, bool, int], ...],
        wishes: tuple[dict[str, int], ...],
        joins: list[tuple[int, tuple[str, str, int]]],
    ) -> None:
        """Connect all clients, and subscribe some."""
        self.world = self.new_world()
        self.has_news = False
        for person, manner, wished in zip(self.world.people, manners, wishes, strict=True):
            person.connect(*manner)
            for filter, qos in wished.items():
                person.subscribe(filter, qos)
        for who, (filter, _, qos) in joins:
            self.world.people[who].subscribe(filter, qos)

    def connected(self) -> list[ClientModel]:
        return self.world.connected()

    def away(self) -> list[ClientModel]:
        return [person for person in self.world.people if person.link is None]

    # Rules

    @precondition(lambda self: self.away())
    @rule(data=st.data(), manner=MANNERS)
    def connect(self, data: st.DataObject, manner: tuple[int, bool, bool, int]) -> None:
        """Reconnect. Earlier packets are durable by then, except perhaps the last DISCONNECT."""
        data.draw(st.sampled_from(self.away())).connect(*manner)
        self.world.absorb()

    @precondition(lambda self: self.away())
    @rule()
    def all_come_back(self) -> None:
        for person in self.away():
            person.connect(5, False, True, 2)
        self.world.absorb()

    @precondition(lambda self: self.connected())
    @rule(data=st.data(), manner=MANNERS)
    def take_over(self, data: st.DataObject, manner: tuple[int, bool, bool, int]) -> None:
        data.draw(st.sampled_from(self.connected())).connect(*manner)
        self.world.absorb()

    @precondition(lambda self: self.connected())
    @rule(data=st.data(), says_goodbye=st.booleans())
    def go(self, data: st.DataObject, says_goodbye: bool) -> None:
        person = data.draw(st.sampled_from(self.connected()))
        if says_goodbye:
            person.leave()
        else:
            person.lose()
        self.world.absorb()

    @precondition(lambda self: self.connected())
    @rule(data=st.data(), filter=st.sampled_from(FILTERS), qos=st.integers(0, 2))
    def subscribe(self, data: st.DataObject, filter: str, qos: int) -> None:
        data.draw(st.sampled_from(self.connected())).subscribe(filter, qos)
        self.world.absorb()

    @precondition(lambda self: self.connected())
    @rule(data=st.data(), group=st.sampled_from(GROUPS))
    def join(self, data: st.DataObject, group: tuple[str, str, int]) -> None:
        filter, _, qos = group
        data.draw(st.sampled_from(self.connected())).subscribe(filter, qos)
        self.world.absorb()

    @precondition(lambda self: self.connected())
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        person = data.draw(st.sampled_from(self.connected()))
        joined = [filter for filter, group in self.world.groups.items() if person.name in group.members]
        if filters := [*person.subscriptions, *joined]:
            person.unsubscribe(data.draw(st.sampled_from(filters)))
            self.world.absorb()

    @precondition(lambda self: self.connected())
    @rule(
        data=st.data(),
        publishes=st.lists(st.tuples(st.sampled_from(TOPICS), st.sampled_from([0, 1, 2, 2])), min_size=1, max_size=5),
    )
    def publish(self, data: st.DataObject, publishes: list[tuple[str, int]]) -> None:
        """Publish some messages in one turn."""
        person = data.draw(st.sampled_from(self.connected()))
        for topic, qos in publishes:
            person.publish(topic, qos)
        self.has_news = True
        self.world.absorb()

    @precondition(lambda self: any(person.todo for person in self.connected()))
    @rule(data=st.data(), most=st.integers(1, 6))
    def acknowledge(self, data: st.DataObject, most: int) -> None:
        """Send some of one client's due acknowledgements, in any order."""
        person = data.draw(st.sampled_from([person for person in self.connected() if person.todo]))
        for _ in range(min(most, len(person.todo))):
            person.do(data.draw(st.sampled_from(person.todo)))
        self.world.absorb()

    @precondition(lambda self: any(person.todo for person in self.connected()))
    @rule(is_committed=st.booleans())
    def everybody_acknowledges(self, is_committed: bool) -> None:
        """Send the acknowledgements that are due, of all clients."""
        if is_committed:
            self.world.commit()
        for person in self.connected():
            for task in list(person.todo):
                person.do(task)
        self.world.absorb()

    @precondition(lambda self: self.has_news)
    @rule()
    def commit(self) -> None:
        self.world.commit()

    @rule(seconds=st.sampled_from([20, 50, 100]))
    def wait(self, seconds: int) -> None:
        self.world.wait(seconds)

    @precondition(lambda self: self.has_news)
    @rule(is_committed=st.booleans())
    def crash(self, is_committed: bool) -> None:
        if is_committed:
            self.world.commit()
        self.world.crash()
        self.has_news = False

    # Invariants

    @invariant()
    def sessions_are_those_that_should_be(self) -> None:
        present = {person.name for person in self.world.people if person.inbox is not None}
        assert {session.client_id for session in self.world.gateway.vhost.sessions} == present

    # End

    def teardown(self) -> None:
        """Check at the end that all messages have arrived after all clients reconnected and acknowledged."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.commit()
        for person in world.people:
            if person.inbox is not None:
                person.connect(5, False, True, 100)
        for _ in range(200):
            world.commit()
            due = [(person, task) for person in world.people for task in person.todo if person.link is not None]
            if not due:
                break
            for person, task in due:
                person.do(task)
        world.require_what_is_owed()
        self.nothing_is_left()

    def nothing_is_left(self) -> None:
        """Check that the store is empty after all connections and sessions have ended."""
        gateway = self.world.gateway
        for person in self.connected():
            person.lose()
        for session in gateway.vhost.sessions:
            qos2_state = session.qos2_state
            assert not any((qos2_state.received, qos2_state.releasing, qos2_state.remembered, session.held))
        for _ in gateway.vhost.sessions.ending_all():
            pass
        gateway.advance(REJOIN_S)
        assert gateway.store.held_ids == frozenset()
        kinds = {change.entity.kind for change in gateway.store.reopened().recover() if isinstance(change, Put)}
        assert kinds <= {"vhost", "user", "permission"}


TestMqttMachine = MqttMachine.TestCase
TestMqttMachine.settings = settings(
    max_examples=examples(400),
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,  # shrinking several failures takes too long
    suppress_health_check=[HealthCheck.too_slow],
)
