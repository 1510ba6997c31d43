"""A consumer to which the server pushes each message as it is stored."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gateway_jetstream.codec.headers import NatsHeaders
from gateway_jetstream.jetstream.ordered_consumer import HEARTBEAT_S, NS, OrderedConsumer
from gateway_jetstream.jetstream.stream_message import DeliveryPlace


class PushConsumer(OrderedConsumer):
    """Delivers each message at once.

    While the gate is closed, the server's requests for flow control wait for their answers, so it sends 32 MiB more at
    most.
    """

    def _config(self, inbox: str) -> Mapping[str, Any]:
        return {"deliver_subject": inbox, "flow_control": True, "idle_heartbeat": int(HEARTBEAT_S * NS)}

    def _created(self, inbox: str) -> None:
        """Do nothing: the server has seen the subscription."""

    def _delivered(self, place: DeliveryPlace) -> None:
        """Do nothing: the next message comes by itself."""

    def _take_status(self, headers: NatsHeaders, reply: str) -> None:
        """Answer a request for flow control, compare a heartbeat, or replace a consumer that the server removed."""
        if headers.status != 100:
            self._restart_later()
            return
        name = self._name
        for subject in (reply, headers.fields.get("Nats-Consumer-Stalled", "")):
            if subject:
                self._gate.when_open(partial(self._let_flow, name, subject))
        last = headers.fields.get("Nats-Last-Consumer")
        if last is not None and last != str(self._last_delivery):
            self._restart()

    def _let_flow(self, name: str, subject: str) -> None:
        """Answer a request for flow control, unless its consumer was given up meanwhile."""
        if name == self._name and self._api.client.is_open:
            self._api.client.publish(subject, b"")
