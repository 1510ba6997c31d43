"""A STOMP client."""

from collections.abc import Callable
from typing import Final

from gateway.simulation.clients.client import SimulatedClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.clients.stomp.frames import FrameReader, StompFrame, UnreadableFrame, write
from gateway.simulation.scene import Scene
from gateway.simulation.world.tasks import Promise, within

#: Time for a receipt, in seconds: longer than any hold-up that a run causes.
ANSWER_S: Final = 90.0

#: The ``message`` of errors of a broker that is not ready, or stops.
_UNAVAILABLE: Final = frozenset(("Broker not ready", "connection_forced"))


class StompClient(SimulatedClient):
    """One connection. ``on_message`` gets each MESSAGE. ``version`` is the only one that the client speaks.

    ``last_heard_s`` is when the last bytes came, heart-beats included, and ``longest_silence_s`` the longest pause
    between two of them.
    """

    def __init__(self, scene: Scene, name: str, version: str, user: str = "guest") -> None:
        super().__init__(scene, name)
        self._user = user
        self.version = version
        self.on_message: Callable[[StompFrame], None] = lambda frame: None
        self.last_heard_s = self.longest_silence_s = 0.0
        self.was_cut = False
        self._reader = FrameReader()
        self._connected: Promise[None] = Promise()
        self._end: Promise[None] = Promise()
        self._receipts: dict[str, Promise[None]] = {}
        self._starting: dict[str, str] = {}  # the receipts of subscriptions that begin, by their id
        self._number = 0

    # Requests

    async def connect(self, heart_beat: str = "0,0") -> None:
        """Connect and log in. :raises Lost: if that fails."""
        self._open("stomp")
        self._reader = FrameReader()
        self._receipts, self._starting = {}, {}
        self._connected, self._end = Promise(), Promise()
        self.last_heard_s, self.longest_silence_s = self.scene.world.now_s, 0.0
        headers = {"login": self._user, "passcode": self._user, "host": "/"}
        if self.version != "1.0":
            headers |= {"accept-version": self.version, "heart-beat": heart_beat}
        self.send("CONNECT", headers)
        await within(self.scene.world, self._connected, ANSWER_S, f"{self.name}: the login")

    def send(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        """Send a frame without waiting for a receipt."""
        if self.scene.trace.is_on:
            self.scene.trace.add(self.name, f"-> {command} {headers} {body[:40]!r}")
        if self._connection is not None:
            self._connection.send(write(StompFrame(command, headers, body), self.version))

    def ask(self, command: str, headers: dict[str, str], body: bytes = b"") -> Promise[None]:
        """Send a frame; the promise is fulfilled by its receipt."""
        self._number += 1
        receipt = f"receipt-{self._number}"
        promise: Promise[None] = Promise()
        if self._connection is None:
            promise.fail(Lost("the connection ended"))
            return promise
        self._receipts[receipt] = promise
        if command == "SUBSCRIBE" and "id" in headers:
            self._starting[headers["id"]] = receipt
        self.send(command, {**headers, "receipt": receipt}, body)
        return within(self.scene.world, promise, ANSWER_S, f"{self.name}: the receipt of {command}")

    def until_ended(self) -> Promise[None]:
        """Return a promise that is fulfilled by the end of the connection."""
        return within(self.scene.world, self._end, ANSWER_S, f"{self.name}: the end of the connection")

    # Input

    def received(self, data: bytes) -> None:
        """Handle bytes of the broker."""
        now_s = self.scene.world.now_s
        self.longest_silence_s = max(self.longest_silence_s, now_s - self.last_heard_s)
        self.last_heard_s = now_s
        try:
            for frame in self._reader.feed(data):
                self._handle(frame)
        except (UnreadableFrame, ValueError) as error:
            self.scene.findings.add("what the broker sends can be read", f"{self.name}: {error}")
            self.drop()

    def closed(self) -> None:
        """Handle the end of the connection."""
        connection, self._connection = self._connection, None
        self.was_cut = connection is None or connection.was_cut
        self.scene.trace.add(self.name, "connection ended")
        self._fail(Lost("the connection ended"))
        self._end.fulfil(None)

    def _fail(self, error: Exception) -> None:
        self._connected.fail(error)
        receipts, self._receipts = self._receipts, {}
        for promise in receipts.values():
            promise.fail(error)

    def _handle(self, frame: StompFrame) -> None:
        headers, findings = frame.headers, self.scene.findings
        if self.scene.trace.is_on:
            self.scene.trace.add(self.name, f"<- {frame.command} {headers} {frame.body[:40]!r}")
        match frame.command:
            case "CONNECTED":
                findings.require(
                    headers.get("version", "1.0") == self.version, "the version is one of the client's", self.name
                )
                self._reader.version = self.version
                self._connected.fulfil(None)
            case "MESSAGE":
                early = self._starting.get(headers.get("subscription", ""))
                findings.require(
                    early not in self._receipts, "a receipt comes before the first message", f"{self.name}: {headers}"
                )
                body, is_durable = frame.body.decode(errors="replace"), headers.get("persistent") == "true"
                self.scene.history.check_properties(self.name, body, headers.get("content-type"), is_durable)
                self.on_message(frame)
            case "RECEIPT":
                promise = self._receipts.pop(headers["receipt-id"], None)
                if promise is None:
                    findings.add("each request is answered once", f"{self.name}: {headers}")
                else:
                    promise.fulfil(None)
            case "ERROR":
                message = headers.get("message", "")
                if message in _UNAVAILABLE:
                    self._fail(Lost(message))
                else:
                    error = RefusedRequest(0, f"{message}: {frame.body.decode(errors='replace')[:200]}")
                    is_awaited = self._receipts or not self._connected.is_done
                    findings.require(is_awaited, "a valid request is not refused", f"{self.name}: {error}")
                    self._fail(error)
