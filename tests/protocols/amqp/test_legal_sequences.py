"""Arbitrary legal sequences on two connections with two channels each, checked against invariants.

Delivery tags rise by one. Every publish on a confirming channel is confirmed once. Deliveries of a closed channel are
requeued at their old positions, marked as redelivered. At the end no message is lost or duplicated.

Rules: R5.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from pamqp import commands

from tests.effort import examples
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frame_reader import ReceivedFrame
from tests.protocols.amqp.frames import asked, publish

QUEUES = ["one", "two"]
CHANNELS = st.integers(0, 3)
HOW = ["ack", "nack", "reject", "drop"]


@dataclass
class Side:
    """The client's state of one of its channels."""

    peer: Peer
    number: int
    mode: str = "plain"
    last_tag: int = 0
    unsettled: dict[int, bytes] = field(default_factory=dict)
    published: int = 0
    confirmed: int = 0
    consumers: dict[str, str] = field(default_factory=dict)
    held: list[bytes] = field(default_factory=list)
    settled_in_tx: dict[int, bytes] = field(default_factory=dict)
    accepted_in_tx: set[bytes] = field(default_factory=set)

    def forget(self) -> None:
        """Reset the state for a new channel under the same number."""
        self.__init__(self.peer, self.number)  # type: ignore[misc]  # as if just made


class Conversations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.gateway = Gateway()
        for name in QUEUES:
            self.gateway.vhost.declare_queue(name, is_durable=True)
        self.gateway.settle()
        self.peers = [self.gateway.connect(), self.gateway.connect()]
        for peer in self.peers:
            peer.send(commands.Channel.Open(), channel=2).receive()
        self.sides = [Side(peer, number) for peer in self.peers for number in (1, 2)]
        self.count = 0
        self.alive: set[bytes] = set()  # published, not yet acknowledged
        self.done: set[bytes] = set()
        self.ever_out: set[bytes] = set()  # delivered at least once
        self.committed: set[bytes] = set()  # published in a transaction: their positions do not follow their numbers

    # ------------------------------------------------------------ requests of clients

    @rule(side=CHANNELS, name=st.sampled_from(QUEUES), mode=st.sampled_from([1, 2]), size=st.sampled_from([0, 9, 9000]))
    def publish(self, side: int, name: str, mode: int, size: int) -> None:
        at = self.sides[side]
        self.count += 1
        body = b"%06d" % self.count + bytes(size)
        at.peer.send(publish("", name, body, delivery_mode=mode, pieces=4000), channel=at.number)
        if at.mode == "tx":
            at.held.append(body)
        else:
            at.published += 1
            self.alive.add(body)

    @rule(side=CHANNELS, mode=st.sampled_from(["confirm", "tx"]))
    def select(self, side: int, mode: str) -> None:
        at = self.sides[side]
        if at.mode == "plain":
            at.mode = mode
            at.published = 0
            select = commands.Confirm.Select() if mode == "confirm" else commands.Tx.Select()
            at.peer.send(select, channel=at.number)

    @rule(side=CHANNELS, name=st.sampled_from(QUEUES), no_ack=st.booleans())
    def get(self, side: int, name: str, no_ack: bool) -> None:
        at = self.sides[side]
        self.receive()
        at.peer.send(asked(commands.Basic.Get, queue=name, no_ack=no_ack), channel=at.number)
        self.receive(no_ack_get=at if no_ack else None)

    @rule(side=CHANNELS, name=st.sampled_from(QUEUES), no_ack=st.booleans(), prefetch=st.integers(0, 3))
    def consume(self, side: int, name: str, no_ack: bool, prefetch: int) -> None:
        at = self.sides[side]
        tag = f"{'auto' if no_ack else 'manual'}-{len(at.consumers)}-{self.count}"
        if tag in at.consumers:
            return
        at.consumers[tag] = name
        qos = commands.Basic.Qos(0, prefetch, False)
        consume = asked(commands.Basic.Consume, queue=name, consumer_tag=tag, no_ack=no_ack)
        at.peer.send(qos, consume, channel=at.number)

    @rule(side=CHANNELS)
    def cancel(self, side: int) -> None:
        at = self.sides[side]
        if at.consumers:
            self.receive()
            tag, _ = at.consumers.popitem()
            at.peer.send(asked(commands.Basic.Cancel, consumer_tag=tag), channel=at.number)

    @rule(
        side=CHANNELS,
        share=st.integers(0, 9),
        how=st.sampled_from(["ack", "nack", "reject", "drop"]),
        many=st.booleans(),
    )
    def settle(self, side: int, share: int, how: str, many: bool) -> None:
        self.receive()
        at = self.sides[side]
        if not at.unsettled:
            return
        tag = list(at.unsettled)[share % len(at.unsettled)]
        many = many and how != "reject"
        tags = [other for other in at.unsettled if other <= tag] if many else [tag]
        settled = {other: at.unsettled.pop(other) for other in tags}
        method = {
            "ack": commands.Basic.Ack(tag, many),
            "nack": commands.Basic.Nack(tag, many, True),
            "drop": commands.Basic.Nack(tag, many, False),
            "reject": commands.Basic.Reject(tag, True),
        }[how]
        at.peer.send(method, channel=at.number)
        is_final = how in ("ack", "drop")
        if at.mode == "tx":
            at.settled_in_tx.update(settled)
            at.accepted_in_tx.update(settled.values() if is_final else ())
        elif is_final:
            self.finish(set(settled.values()))

    @rule(side=CHANNELS, commit=st.booleans())
    def end_transaction(self, side: int, commit: bool) -> None:
        self.receive()
        at = self.sides[side]
        if at.mode != "tx":
            return
        if commit:
            at.peer.send(commands.Tx.Commit(), channel=at.number)
            self.alive.update(at.held)
            self.committed.update(at.held)
            self.finish(at.accepted_in_tx)
        else:
            at.peer.send(commands.Tx.Rollback(), channel=at.number)
            at.unsettled = dict(sorted({**at.unsettled, **at.settled_in_tx}.items()))
        at.held, at.settled_in_tx, at.accepted_in_tx = [], {}, set()

    @rule(side=CHANNELS)
    def reopen(self, side: int) -> None:
        self.receive()
        at = self.sides[side]
        at.peer.send(commands.Channel.Close(200, "", 0, 0), commands.Channel.Open(), channel=at.number)
        at.forget()

    @rule(side=CHANNELS)
    def fail(self, side: int) -> None:
        self.receive()
        at = self.sides[side]
        frames = publish("nosuch", ""), commands.Channel.CloseOk(), commands.Channel.Open()
        at.peer.send(*frames, channel=at.number)
        at.forget()

    @rule(which=st.integers(0, 1))
    def lose(self, which: int) -> None:
        self.receive()
        self.peers[which].lose()
        self.peers[which] = peer = self.gateway.connect()
        peer.send(commands.Channel.Open(), channel=2).receive()
        for number in (1, 2):
            self.sides[2 * which + number - 1] = Side(peer, number)

    @rule()
    def end_turn_without_commit(self) -> None:
        self.gateway.end_turn()

    # ------------------------------------------------------------ answers

    def receive(self, no_ack_get: Side | None = None) -> None:
        self.gateway.settle()
        for peer in self.peers:
            for received in peer.receive_frames():
                side = next(side for side in self.sides if side.peer is peer and side.number == received.channel)
                self.note(side, received, side is no_ack_get)

    def note(self, at: Side, received: ReceivedFrame, is_no_ack_get: bool) -> None:
        method = received.method
        if isinstance(method, commands.Basic.Deliver | commands.Basic.GetOk):
            assert method.delivery_tag == at.last_tag + 1
            at.last_tag += 1
            assert received.body in self.alive
            assert method.redelivered is (received.body in self.ever_out)
            self.ever_out.add(received.body)
            is_auto = is_no_ack_get or str(getattr(method, "consumer_tag", "")).startswith("auto")
            if is_auto:
                self.finish({received.body})
            else:
                assert received.body not in {body for side in self.sides for body in side.unsettled.values()}
                at.unsettled[at.last_tag] = received.body
        elif isinstance(method, commands.Basic.Ack):
            assert at.mode == "confirm"
            assert method.delivery_tag is not None
            assert at.confirmed < method.delivery_tag <= at.published
            assert method.multiple or method.delivery_tag == at.confirmed + 1
            at.confirmed = method.delivery_tag
        else:
            assert not isinstance(method, commands.Connection.Close | commands.Basic.Nack)

    def finish(self, bodies: set[bytes]) -> None:
        assert not bodies & self.done
        self.alive -= bodies
        self.done |= bodies

    # ------------------------------------------------------------ invariants

    @invariant()
    def everything_published_is_somewhere_once(self) -> None:
        self.receive()
        waiting = sum(len(self.gateway.vhost.queue(name)) for name in QUEUES)
        held = sum(len(side.unsettled) + len(side.settled_in_tx) for side in self.sides)
        assert waiting + held == len(self.alive)

    @invariant()
    def every_publish_was_confirmed_once(self) -> None:
        self.receive()
        for side in self.sides:
            assert side.mode != "confirm" or side.confirmed == side.published

    def teardown(self) -> None:
        for which in (0, 1):
            self.lose(which)
        self.receive()
        last = self.gateway.connect()
        left: list[bytes] = []
        for name in QUEUES:
            consume = asked(commands.Basic.Consume, queue=name, consumer_tag=name, no_ack=True)
            bodies = [received.body for received in last.send(consume).receive_frames()[1:]]
            plain = [body for body in bodies if body not in self.committed]
            assert plain == sorted(plain)
            left += bodies
        assert sorted(left) == sorted(self.alive)


Conversations.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestConversations = Conversations.TestCase
