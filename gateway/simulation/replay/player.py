"""Plays the events of a recording in their order: not before their times, and not before the answers they followed."""

from collections.abc import Callable, Iterable
from typing import Final

from gateway.recording.lines import RecordedEvent
from gateway.recording.masking.protocols import plain_name
from gateway.simulation.network.network import PortClosed
from gateway.simulation.network.pipe import LinkQuality
from gateway.simulation.replay.client import ReplayClient
from gateway.simulation.replay.dialogue import ReplayDialogue
from gateway.simulation.replay.names import ChosenNames
from gateway.simulation.scene import Scene

#: The longest virtual time that an event waits for the answers before it, in seconds.
_PATIENCE_S: Final = 5.0

#: Virtual time between two events of one moment, so that the broker reads them one by one.
_STEP_S: Final = 1e-6

#: What the dialogue says of an end.
_ENDS: Final = {"client": "closes", "broken": "is gone"}

#: A connection that does not cut bytes: they come as they were recorded.
_AS_RECORDED: Final = LinkQuality(0.0, 0.0, 65_536)


class Player:
    """Owns the replayed connections, by their numbers in the recording.

    With ``is_disturbed`` the network cuts and delays the bytes as the seed decides.
    """

    def __init__(self, scene: Scene, *, is_disturbed: bool) -> None:
        self.clients: dict[int, ReplayClient] = {}
        self._scene = scene
        self._link = None if is_disturbed else _AS_RECORDED
        self._names = ChosenNames()

    async def play(self, events: Iterable[RecordedEvent]) -> None:
        """Play all events."""
        began_s = self._scene.world.now_s
        for event in events:
            wait_s = began_s + event.at_s - self._scene.world.now_s
            await self._scene.sleep(max(wait_s, _STEP_S))
            if event.kind == "opened":
                self._open(event)
            elif (client := self.clients.get(event.connection)) is not None:
                await self._play_one(client, event)

    async def _play_one(self, client: ReplayClient, event: RecordedEvent) -> None:
        if event.kind == "sent":
            client.expect(event.answers, event.names)
            return
        if event.kind == "incomplete":
            client.is_incomplete = True
        await self._wait(client, lambda: len(client.answers) >= len(client.recorded))
        if event.kind == "received":
            if client.is_open:
                client.send(event.data)
            elif not client.notes:
                client.notes.append("the replayed broker closed the connection before the client's last bytes")
        elif event.reason == "server":
            await self._wait(client, lambda: not client.is_open)
            if client.is_open:
                client.notes.append("the recorded broker closed the connection, the replayed one does not")
        elif client.is_open and client.connection is not None:
            self._say(client, "-", _ENDS.get(event.reason, event.reason))
            if event.reason == "client":
                client.connection.close()
            else:
                client.connection.cut(0)

    async def _wait(self, client: ReplayClient, is_met: Callable[[], bool]) -> None:
        """Wait until a condition is met, for some time."""
        world = self._scene.world
        ends_s = world.now_s + _PATIENCE_S
        while client.is_open and not is_met() and world.now_s < ends_s:
            changed = client.changed()
            world.schedule(ends_s - world.now_s, lambda changed=changed: changed.fulfil(None))  # type: ignore[misc]
            await changed

    def _open(self, event: RecordedEvent) -> None:
        dialogue = self._dialogue(event) if self._scene.trace.is_on else None
        client = ReplayClient(event.listener, event.connection, self._names, dialogue)
        self.clients[event.connection] = client
        port = self._scene.process.ports.get(plain_name(event.listener))
        self._say(client, "-", f"connects (recorded peer {event.peer})")
        try:
            client.connection = self._scene.network.connect(port or 0, client, self._link)
        except PortClosed:
            client.is_open = False
            client.notes.append(f"the replayed broker has no listener '{plain_name(event.listener)}'")

    def _dialogue(self, event: RecordedEvent) -> ReplayDialogue:
        who = f"{event.listener}-{event.connection}"
        return ReplayDialogue(event.listener, lambda direction, text: self._scene.trace.add(who, f"{direction} {text}"))

    def _say(self, client: ReplayClient, direction: str, text: str) -> None:
        self._scene.trace.add(f"{client.listener}-{client.number}", f"{direction} {text}")
