"""The start of a node in slices, and the listeners that answer "not ready" until it is complete."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gateway.config import Settings
from gateway.kernel.broker.recovery import Recovery
from gateway.kernel.clock import Clock
from gateway.logs import StructuredLog
from gateway.management.http.not_ready import NotReadyApi
from gateway.management.web.factory import HttpFactory
from gateway.net import websocket
from gateway.net.not_ready import NotReadyFactory, Refusal
from gateway.net.websocket import WebSocketFactory
from gateway.node.http import http_limits, web_origins
from gateway_amqp import not_ready as amqp
from gateway_mqtt import not_ready as mqtt
from gateway_stomp import not_ready as stomp

_log: Final = StructuredLog("node")

#: Length of one slice of the start, in seconds.
_SLICE_S: Final = 0.02

#: How long a client waits for the start to complete before it is refused as not ready, in seconds.
_SOON_S: Final = 0.5

#: Seconds between two progress reports, and between two of them in the log.
_REPORT_S: Final = 1.0
_LOG_S: Final = 5.0


def progress_text(recovery: Recovery) -> str:
    """Return the progress of the recovery as text."""
    return f"the broker is starting, {recovery.done} of {recovery.total} records recovered; try again"


class Start:
    """Runs the steps of a start, with turns of the reactor in between.

    ``on_slow`` is called once if the start takes longer than clients may wait for it, ``between`` after each slice.
    """

    def __init__(self, reactor: Any, recovery: Recovery, between: Callable[[], None]) -> None:  # Any: see Node
        self.on_slow: Callable[[], None] = lambda: None
        self.progress: Callable[[str], None] = lambda text: None
        self._reactor = reactor
        self._recovery = recovery
        self._between = between
        self._steps: Iterator[None] = iter(())
        self._next: Any = None
        self._reported_s = self._logged_s = 0.0
        self._is_slow = False

    def begin(self, steps: Iterator[None], ready: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        """Run the steps; then call ``ready``, or ``failed`` with the exception that a step or ``ready`` raised."""
        self._steps, self._ready, self._failed = steps, ready, failed
        self._began_s = self._reported_s = self._logged_s = self._reactor.seconds()
        self._run_slice()

    def stop(self) -> None:
        """Run no more steps."""
        self._steps = iter(())
        if self._next is not None and self._next.active():
            self._next.cancel()

    def _run_slice(self) -> None:
        ends_s = self._reactor.seconds() + _SLICE_S
        try:
            if all(self._reactor.seconds() < ends_s for _ in self._steps):
                self._ready()
                return
            self._between()
            self._report(self._reactor.seconds())
        except Exception as error:  # any error must stop the reactor, which has no broker to serve
            self._failed(error)
            return
        self._next = self._reactor.callLater(0, self._run_slice)

    def _report(self, now_s: float) -> None:
        if not self._is_slow and now_s - self._began_s >= _SOON_S:
            self._is_slow = True
            self.on_slow()
        if now_s - self._reported_s >= _REPORT_S:
            self._reported_s = now_s
            self.progress(progress_text(self._recovery))
        if now_s - self._logged_s >= _LOG_S:
            self._logged_s = now_s
            _log.info("recovering", records=self._recovery.done, of=self._recovery.total)


class NotReadyListeners:
    """Creates the listener factories used while the broker starts. ``clock`` must be one that is never paused."""

    def __init__(self, settings: Settings, reactor: Any, clock: Clock, recovery: Recovery) -> None:  # Any: see Node
        self._settings = settings
        self._reactor = reactor
        self._clock = clock
        self._recovery = recovery

    def factory(self, name: str) -> Any:
        """Return the factory for a listener's protocol."""
        settings = self._settings
        if name == "management":
            return HttpFactory(NotReadyApi(self._fields), http_limits(settings), self._reactor)
        protocol = _plain(name).removeprefix("web_")
        plain = NotReadyFactory(self._refusal(protocol), self._clock)
        if not name.startswith("web_"):
            return plain
        web = settings.web_mqtt if protocol == "mqtt" else settings.web_stomp
        timeout_s = settings.mqtt.login_timeout_s if protocol == "mqtt" else settings.stomp.login_timeout_s
        return WebSocketFactory(plain, _DIALECTS[protocol], web.path, self._clock, timeout_s, web_origins(web))

    def is_proxied(self, name: str) -> bool:
        """Return whether a listener expects the PROXY protocol."""
        return name != "management" and bool(getattr(self._settings, _plain(name)).proxy_protocol)

    def _refusal(self, protocol: str) -> Refusal:
        refusal = _REFUSALS[protocol]
        return lambda data: refusal(data, progress_text(self._recovery))

    def _fields(self) -> Mapping[str, object]:
        recovery = self._recovery
        return {"reason": progress_text(recovery), "recovered": recovery.done, "of": recovery.total}


_REFUSALS: Final[Mapping[str, Callable[[bytes, str], bytes | None]]] = {
    "amqp": amqp.refusal,
    "mqtt": mqtt.refusal,
    "stomp": stomp.refusal,
}

_DIALECTS: Final = {"mqtt": websocket.MQTT, "stomp": websocket.STOMP}

_PLAIN_NAMES: Final = {
    "amqps": "amqp",
    "mqtts": "mqtt",
    "stomps": "stomp",
    "web_mqtts": "web_mqtt",
    "web_stomps": "web_stomp",
}


def _plain(name: str) -> str:
    """Return the listener without TLS that shares the settings."""
    return _PLAIN_NAMES.get(name, name)
