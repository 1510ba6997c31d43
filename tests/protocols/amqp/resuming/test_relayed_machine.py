"""One connection through any cut of its bytes and any loss of leaders, against a model: the laws of ADR 0027."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands

from gateway_amqp.content import BODY, HEADER, METHOD
from gateway_amqp.methods import decode_method, encode_method
from gateway_amqp.resuming.relay_stage import RelayStage
from gateway_amqp.resuming.relayed_connection import RelayedConnection
from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.protocols.amqp.resuming.model_leader import FrameCutter, Log, ModelLeader, content

#: More than any amount of bytes in a test.
EVERYTHING = 10**9

CHANNELS = (1, 2)


class ModelClient:
    """The client: what it sent, and what it got. Its requests are answered before it sends more."""

    def __init__(self) -> None:
        self.outgoing = b""
        self.answers: list[Any] = []
        self.published: dict[int, list[bytes]] = {channel: [] for channel in CHANNELS}
        self.confirmed: dict[int, set[int]] = {channel: set() for channel in CHANNELS}
        self.bodies: dict[int, bytes] = {}  # by delivery tag
        self.flags: dict[int, bool] = {}
        self.acknowledged: list[bytes] = []
        self._cutter = FrameCutter()
        self._delivery: Any = None
        self._missing = 0
        self._body = b""

    def send(self, channel: int, method: Any) -> None:
        self.outgoing += encode_method(channel, method)

    def publish(self, channel: int, size: int, pieces: int) -> None:
        numbers = self.published[channel]
        body = f"{channel}:{len(numbers) + 1}:".encode() + b"x" * size
        numbers.append(body)
        self.outgoing += content(channel, commands.Basic.Publish(0, "", "orders"), body, pieces)

    def receive(self, data: bytes) -> None:
        for kind, channel, payload in self._cutter.feed(data):
            if kind == METHOD:
                assert self._delivery is None, "a method within a content"
                self._method(channel, decode_method(payload))
            elif kind == HEADER:
                self._missing, self._body = int.from_bytes(payload[4:12]), b""
            elif kind == BODY:
                self._body += payload
            if kind in (HEADER, BODY) and len(self._body) == self._missing:
                self._delivered()

    def _method(self, channel: int, method: Any) -> None:
        if isinstance(method, commands.Basic.Deliver):
            self._delivery = method
        elif isinstance(method, commands.Basic.Ack):
            numbers = self.confirmed[channel]
            first = 1 if method.multiple else method.delivery_tag
            found = {each for each in range(first, method.delivery_tag + 1) if each not in numbers}
            assert found, f"{method.delivery_tag} is confirmed twice"
            assert method.delivery_tag <= len(self.published[channel])
            numbers |= found
        else:
            assert not isinstance(method, commands.Channel.Close | commands.Connection.Close), dict(method)
            self.answers.append(method)

    def _delivered(self) -> None:
        tag = self._delivery.delivery_tag
        assert tag == len(self.bodies) + 1, "delivery tags rise by one"
        self.flags[tag] = self._delivery.redelivered
        had_it = self._body in self.bodies.values()
        assert self._delivery.redelivered or not had_it, "the flag of a repeated delivery is missing"
        self.bodies[tag] = self._body
        self._delivery = None


class RelayedDialogue:
    """A client, the relay, and one leader after the other; each wire is a buffer of bytes.

    Each step has an amount, whose meaning is that of the step, and a flag.
    """

    def __init__(self) -> None:
        self.log = Log()
        self.client = ModelClient()
        self.relay = RelayedConnection(most_logins=EVERYTHING)
        self.leader = ModelLeader(self.log)
        self.is_attached = True
        self.to_leader = b""
        self.to_client = b""
        self.settled: set[int] = set()

    # The wires

    def collect(self) -> None:
        self.to_client += self.relay.waiting.take_for_client()
        taken = self.relay.waiting.take_for_leader()
        if self.is_attached:
            self.to_leader += taken

    def client_to_relay(self, size: int) -> None:
        if self.client.outgoing and not self.relay.is_full and self.relay.stage is not RelayStage.HELD:
            data, self.client.outgoing = self.client.outgoing[:size], self.client.outgoing[size:]
            self.relay.receive_from_client(data)
            self.collect()

    def relay_to_leader(self, size: int) -> None:
        data, self.to_leader = self.to_leader[:size], self.to_leader[size:]
        if data:
            self.leader.receive(data)

    def leader_to_relay(self, size: int) -> None:
        data, self.leader.outgoing = self.leader.outgoing[:size], self.leader.outgoing[size:]
        if self.is_attached and data:
            self.relay.receive_from_leader(data)
            self.collect()

    def relay_to_client(self, size: int) -> None:
        data, self.to_client = self.to_client[:size], self.to_client[size:]
        if data:
            self.client.receive(data)

    def settle(self) -> None:
        """Let all bytes arrive."""
        while self.client.outgoing or self.to_leader or self.leader.outgoing or self.to_client:
            self.client_to_relay(EVERYTHING)
            self.relay_to_leader(EVERYTHING)
            self.leader_to_relay(EVERYTHING)
            self.relay_to_client(EVERYTHING)

    def call(self, channel: int, method: Any) -> None:
        self.client.send(channel, method)
        self.settle()

    def log_in(self) -> None:
        self.client.outgoing = PROTOCOL_HEADER
        self.settle()
        self.call(0, commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"))
        self.client.send(0, commands.Connection.TuneOk(2047, 131_072, 10))
        self.call(0, commands.Connection.Open("/"))
        for channel in CHANNELS:
            self.call(channel, commands.Channel.Open())
        self.call(1, commands.Confirm.Select())
        self.call(2, commands.Confirm.Select())
        self.call(2, commands.Basic.Consume(0, "orders"))

    # What may happen

    def publish(self, amount: int, flag: bool) -> None:
        self.client.publish(1 + flag, amount % 41, 1 + amount % 3)

    def acknowledge(self, amount: int, flag: bool) -> None:
        waiting = sorted(set(self.client.bodies) - self.settled)
        if waiting:
            tag = waiting[amount % len(waiting)]
            tags = [each for each in waiting if each <= tag] if flag else [tag]
            self.client.acknowledged += [self.client.bodies[each] for each in tags]
            self.settled |= set(tags)
            self.client.send(2, commands.Basic.Ack(tag, flag))

    def declare(self, amount: int, flag: bool) -> None:
        name = ("", "a", "b")[amount % 3]
        self.client.send(1, commands.Queue.Declare(0, name, exclusive=not name, nowait=flag and bool(name)))

    def pass_from_client(self, amount: int, flag: bool) -> None:
        self.client_to_relay(1 + amount)

    def pass_to_leader(self, amount: int, flag: bool) -> None:
        self.relay_to_leader(1 + amount)

    def pass_from_leader(self, amount: int, flag: bool) -> None:
        self.leader_to_relay(1 + amount)

    def pass_to_client(self, amount: int, flag: bool) -> None:
        self.relay_to_client(1 + amount)

    def commit(self, amount: int, flag: bool) -> None:
        self.leader.commit(1 + amount % 5, is_multiple=flag)

    def deliver(self, amount: int, flag: bool) -> None:
        self.leader.deliver(1 + amount % 3, 1 + amount % 2)

    def lose(self, amount: int, flag: bool) -> None:
        """Lose the leader, or find another one."""
        if not self.is_attached:
            self.elect()
            return
        self.leader.die(amount % 4)
        self.is_attached = False
        self.to_leader = b""
        assert self.relay.leader_lost()
        self.collect()

    def elect(self) -> None:
        self.leader = ModelLeader(self.log)
        self.is_attached = True
        self.relay.leader_found()
        self.collect()

    def arrive(self, amount: int, flag: bool) -> None:
        """Let everything arrive."""
        if self.is_attached:
            self.settle()

    # The laws

    def check(self) -> None:
        """Check what holds at any moment."""
        for channel, numbers in self.client.confirmed.items():
            published = self.client.published[channel]
            assert all(published[number - 1] in self.log.stored for number in numbers), "a confirmed message is lost"
            first = list(dict.fromkeys(each for each in self.log.stored if each.startswith(b"%d:" % channel)))
            assert first == published[: len(first)], "publishes came out of order"
        assert set(self.log.acknowledged) <= set(self.client.acknowledged), "the client did not acknowledge that"

    def finish(self) -> None:
        """Let a leader live: everything is confirmed and delivered."""
        if not self.is_attached:
            self.elect()
        self.settle()
        self.leader.commit(EVERYTHING, is_multiple=True)
        self.settle()
        self.leader.deliver(EVERYTHING, 2)
        self.settle()
        self.check()
        for channel in CHANNELS:
            assert self.client.confirmed[channel] == set(range(1, len(self.client.published[channel]) + 1))
            assert set(self.client.published[channel]) <= set(self.client.bodies.values())
        assert self.relay.stage is RelayStage.OPEN


STEPS = (
    "publish", "publish", "acknowledge", "declare", "pass_from_client", "pass_to_leader", "pass_from_leader",
    "pass_to_client", "commit", "deliver", "lose", "arrive",
)  # fmt: skip


def run(steps: list[tuple[str, int, bool]]) -> None:
    """Run a dialogue with these steps, and check the laws after each."""
    dialogue = RelayedDialogue()
    dialogue.log_in()
    for name, amount, flag in steps:
        getattr(dialogue, name)(amount, flag)
        dialogue.check()
    dialogue.finish()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 150), st.booleans()), max_size=60))
def test_the_laws_hold_however_bytes_are_cut_and_leaders_are_lost(steps: list[tuple[str, int, bool]]) -> None:
    run(steps)
