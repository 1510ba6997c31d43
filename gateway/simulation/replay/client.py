"""The client's side of a replayed connection: collects what the broker sends, and what it should send."""

from gateway.recording.outlines.outline import AnswerOutline
from gateway.simulation.network.connection import SimulatedConnection
from gateway.simulation.replay.dialogue import ReplayDialogue
from gateway.simulation.replay.names import ChosenNames
from gateway.simulation.world.tasks import Promise


class ReplayClient:
    """One connection. ``answers`` are those of the replay, ``recorded`` those of the recording, as far as it is read.

    ``is_open`` until the connection ends. ``notes`` say what could not be replayed. ``is_incomplete``: the recording
    does not have the rest.
    """

    def __init__(self, listener: str, number: int, names: ChosenNames, dialogue: ReplayDialogue | None) -> None:
        self.listener = listener
        self.number = number
        self.connection: SimulatedConnection | None = None
        self.is_open = True
        self.is_incomplete = False
        self.answers: list[str] = []
        self.recorded: list[str] = []
        self.notes: list[str] = []
        self._names = names
        self._filter = names.filter_of(listener)
        self._outline = AnswerOutline(listener)
        self._dialogue = dialogue
        self._replayed_names: list[str] = []
        self._recorded_names: list[str] = []
        self._learnt = 0
        self._waiting: Promise[None] | None = None

    def expect(self, answers: list[str], names: list[str]) -> None:
        """Add what the broker sent in the recording."""
        self.recorded += answers
        self._recorded_names += names
        self._learn()

    def send(self, data: bytes) -> None:
        """Send bytes of the recording, with the names of the replay."""
        assert self.connection is not None
        data = self._filter.feed(data)
        if self._dialogue is not None:
            self._dialogue.client_sent(data)
        self.connection.send(data)

    def changed(self) -> Promise[None]:
        """Return a promise that is fulfilled when the broker has sent something, or closed the connection."""
        if self._waiting is None or self._waiting.is_done:
            self._waiting = Promise()
        return self._waiting

    # The client's end of the network

    def received(self, data: bytes) -> None:
        """Handle bytes of the broker."""
        if self._dialogue is not None:
            self._dialogue.broker_sent(data)
        self._outline.feed(data)
        answers, names = self._outline.take()
        self.answers += answers
        self._replayed_names += names
        self._learn()
        self._wake()

    def closed(self) -> None:
        """Handle the end of the connection."""
        self.is_open = False
        self._wake()

    def _learn(self) -> None:
        """Pair the names of the recording and of the replay, in the order in which the broker chose them."""
        end = min(len(self._recorded_names), len(self._replayed_names))
        for at in range(self._learnt, end):
            self._names.learn(self._recorded_names[at], self._replayed_names[at])
        self._learnt = end

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.fulfil(None)
