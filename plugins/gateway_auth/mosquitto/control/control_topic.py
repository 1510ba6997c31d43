"""The topic ``$CONTROL/dynamic-security/v1``: commands of clients that may change the dynamic security file."""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from twisted.internet.threads import deferToThread

from gateway.api import (
    Decision,
    Diversion,
    Interceptor,
    Message,
    Origin,
    Properties,
    Refusal,
    RefusalCause,
    StructuredLog,
    TracedVhost,
)
from gateway_auth.mosquitto.control.commands import CommandBatch, Response, parse_batch
from gateway_auth.mosquitto.control.edits import Edit, edit_file
from gateway_auth.mosquitto.dynamic_security import DynamicSecurity
from gateway_auth.mosquitto.rules import MqttClient
from gateway_auth.mosquitto.topics import levels_of

TOPIC: Final = "$CONTROL/dynamic-security/v1"
_LEVELS: Final = levels_of(TOPIC)
_KEY: Final = TOPIC.replace("/", ".")
_RESPONSE_KEY: Final = f"{_KEY}.response"

#: Messages that wait for their turn, and the size of each in bytes.
_MOST_WAITING: Final = 100
_LARGEST: Final = 1024 * 1024

#: The queues of a client's session; the first that exists has the response.
_QUEUES: Final = ("mqtt-subscription-{}qos1", "mqtt-subscription-{}qos0")

_log: Final = StructuredLog("access")


@dataclass(frozen=True, slots=True)
class _Waiting:
    batch: CommandBatch
    client: MqttClient
    exchange: str


class ControlTopic(Interceptor):
    """Performs the commands of clients, one message after the other, in a thread, and sends each its response.

    ``client_of`` returns the client of this plugin that an origin is, and ``rules`` the rules in use. ``use`` puts new
    ones in use. ``anonymous_user`` is the name of clients without one.
    """

    on_error = "refuse"
    routing_keys = frozenset({_KEY})

    def __init__(
        self,
        vhost: TracedVhost,
        path: str,
        client_of: Callable[[Origin], MqttClient | None],
        rules: Callable[[], DynamicSecurity],
        use: Callable[[DynamicSecurity], None],
        anonymous_user: str = "",
    ) -> None:
        self._vhost = vhost
        self._path = path
        self._client_of = client_of
        self._rules = rules
        self._use = use
        self._anonymous_user = anonymous_user
        self._waiting: deque[_Waiting] = deque()
        self._is_closed = False

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Take a message with commands, which reaches no queue; refuse it if the client may not send any."""
        client = self._client_of(origin)
        if client is None or not self._rules().may_control(client, _LEVELS):
            return Refusal(f"no role of user '{origin.user}' permits to publish to {TOPIC}", RefusalCause.ACCESS)
        if len(message.body) > _LARGEST:
            return Refusal(f"commands of {len(message.body)} bytes; the limit is {_LARGEST}", RefusalCause.PAYLOAD)
        if len(self._waiting) >= _MOST_WAITING:
            return Refusal(f"{_MOST_WAITING} messages with commands are waiting", RefusalCause.LIMIT)
        self._waiting.append(_Waiting(parse_batch(message.body), client, message.exchange))
        if len(self._waiting) == 1:
            self._start()
        return Diversion(
            "", ""
        )  # no queue has an empty name: the message is confirmed, and neither routed nor retained

    def close(self) -> None:
        """Perform no more commands."""
        self._is_closed = True

    def _start(self) -> None:
        waiting = self._waiting[0]
        done: Any = deferToThread(edit_file, self._path, waiting.batch)
        done.addCallback(lambda edit: self._finish(waiting, edit))
        done.addErrback(lambda failure: _log.error("dynamic security command failed", reason=str(failure.value)))
        done.addBoth(lambda _: self._next())

    def _next(self) -> None:
        self._waiting.popleft()
        if self._is_closed:
            self._waiting.clear()
        elif self._waiting:
            self._start()

    def _finish(self, waiting: _Waiting, edit: Edit) -> None:
        self._log(waiting.client, edit)
        if self._is_closed:
            return
        if edit.content is not None:
            self._use(edit.content)
        self._respond(waiting, edit.responses)
        for user in sorted(edit.users):
            if name := user or self._anonymous_user:
                self._vhost.close_connections(name, "the dynamic security of the client has changed")

    def _respond(self, waiting: _Waiting, responses: list[Response]) -> None:
        body = json.dumps({"responses": responses}).encode()
        for queue in _QUEUES:
            name = queue.format(waiting.client.client_id)
            if self._vhost.publish_to_queue(name, waiting.exchange, _RESPONSE_KEY, Properties(), body):
                return

    def _log(self, client: MqttClient, edit: Edit) -> None:
        if edit.failure:
            _log.error("dynamic security file not changed", file=self._path, reason=edit.failure)
        for response in edit.responses:
            _log.info(
                "dynamic security command",
                user=client.user,
                client_id=client.client_id,
                command=response["command"][:100],
                error=response.get("error", ""),
            )
