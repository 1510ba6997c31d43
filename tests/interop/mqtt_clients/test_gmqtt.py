"""gmqtt: callbacks, 5.0 properties with the names of the specification, and its own codec."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import gmqtt
import pytest
from gmqtt.mqtt.constants import MQTTv50, MQTTv311
from gmqtt.mqtt.handler import MQTTConnectError

from tests.interop.amqp_clients.test_aio_pika import on_a_loop
from tests.interop.mqtt_clients.mqtt_server import MqttServer

VERSIONS = pytest.mark.parametrize("version", [MQTTv311, MQTTv50], ids=["3.1.1", "5.0"])


class Received(NamedTuple):
    topic: str
    payload: bytes
    qos: int
    properties: dict[str, Any]


class Client(gmqtt.Client):
    """One client, with a queue of received messages and events for answers."""

    def __init__(self, client_id: str, **options: Any) -> None:
        super().__init__(client_id, **options)
        self.inbox: asyncio.Queue[Received] = asyncio.Queue()
        self.subscribed = asyncio.Event()
        self.granted: list[int] = []
        self.is_session_present = False
        self.on_message = self._take
        self.on_subscribe = self._note_grant
        self.on_connect = self._note_session

    async def subscribe_and_wait(self, topic: str, **options: Any) -> list[int]:
        self.subscribed.clear()
        self.subscribe(topic, **options)
        await self.subscribed.wait()
        return self.granted

    def _take(self, client: gmqtt.Client, topic: str, payload: bytes, qos: int, properties: dict[str, Any]) -> int:
        self.inbox.put_nowait(Received(topic, bytes(payload), qos, properties))
        return 0

    def _note_grant(self, client: gmqtt.Client, mid: int, qos: list[int], properties: dict[str, Any]) -> None:
        self.granted = list(qos)
        self.subscribed.set()

    def _note_session(self, client: gmqtt.Client, flags: int, code: int, properties: dict[str, Any]) -> None:
        self.is_session_present = bool(flags)


@asynccontextmanager
async def connected(
    server: MqttServer, client_id: str, version: int = MQTTv50, *, password: str | None = None, **options: Any
) -> AsyncIterator[Client]:
    client = Client(client_id, **options)
    client.set_config({"reconnect_retries": 0})
    client.set_auth_credentials(server.user, server.password if password is None else password)
    await client.connect(server.host, server.port, version=version)
    try:
        yield client
    finally:
        await client.disconnect()


@VERSIONS
@on_a_loop
async def test_messages_of_every_qos(server: MqttServer, name: str, version: int) -> None:
    async with connected(server, name, version) as client:
        assert await client.subscribe_and_wait(f"{name}/#", qos=2) == [2]
        for qos in range(3):
            client.publish(f"{name}/{qos}", f"hello {qos}", qos=qos)
        messages = [await client.inbox.get() for _ in range(3)]
    assert [message[:3] for message in messages] == [
        (f"{name}/{qos}", f"hello {qos}".encode(), qos) for qos in range(3)
    ]


@on_a_loop
async def test_a_request_is_answered_at_its_response_topic(server: MqttServer, name: str) -> None:
    async with connected(server, f"{name}-1") as client, connected(server, f"{name}-2") as responder:
        await client.subscribe_and_wait(f"{name}/answers", qos=1)
        await responder.subscribe_and_wait(f"{name}/questions", qos=1, subscription_identifier=5)
        client.publish(
            f"{name}/questions",
            b"6 7",
            qos=1,
            response_topic=f"{name}/answers",
            correlation_data=b"\x00\x01",
            content_type="text/plain",
            message_expiry_interval=60,
            user_property=[("a", "1"), ("a", "2")],
        )
        question = (await responder.inbox.get()).properties
        assert question["response_topic"] == [f"{name}/answers"]
        assert question["correlation_data"] == [b"\x00\x01"]
        assert question["content_type"] == ["text/plain"]
        assert question["user_property"] == [("a", "1"), ("a", "2")]
        assert question["subscription_identifier"] == [5]
        responder.publish(question["response_topic"][0], b"42", qos=1, correlation_data=question["correlation_data"][0])
        answer = await client.inbox.get()
    assert (answer.payload, answer.properties["correlation_data"]) == (b"42", [b"\x00\x01"])


@on_a_loop
async def test_messages_wait_for_a_client_that_reconnects(server: MqttServer, name: str) -> None:
    async with connected(server, name, clean_session=False, session_expiry_interval=600) as sleeper:
        await sleeper.subscribe_and_wait(name, qos=1)
    async with connected(server, f"{name}-other") as other:
        await other.subscribe_and_wait(f"{name}/done", qos=1)
        for number in range(10):
            other.publish(name, b"%d" % number, qos=1)
        other.publish(f"{name}/done", b"", qos=1)
        await other.inbox.get()
    async with connected(server, name, clean_session=False, session_expiry_interval=600) as back:
        payloads = [(await back.inbox.get()).payload for _ in range(10)]
        assert back.is_session_present
    assert payloads == [b"%d" % number for number in range(10)]


@on_a_loop
async def test_a_will_is_published_when_the_connection_is_cut(server: MqttServer, name: str) -> None:
    async with connected(server, name) as witness:
        await witness.subscribe_and_wait(f"{name}/will", qos=1)
        mortal = Client(f"{name}-mortal", will_message=gmqtt.Message(f"{name}/will", b"gone", qos=1))
        mortal.set_config({"reconnect_retries": 0})
        mortal.set_auth_credentials(server.user, server.password)
        await mortal.connect(server.host, server.port)
        mortal._connection._transport.abort()
        assert (await witness.inbox.get()).payload == b"gone"


@on_a_loop
async def test_a_group_shares_messages(server: MqttServer, name: str) -> None:
    async with connected(server, f"{name}-1") as one, connected(server, f"{name}-2") as two:
        for member in (one, two):
            await member.subscribe_and_wait(f"$share/workers/{name}", qos=1)
        async with connected(server, f"{name}-3") as publisher:
            for number in range(20):
                publisher.publish(name, b"%d" % number, qos=1)
            shares = [[(await member.inbox.get()).payload for _ in range(10)] for member in (one, two)]
    assert sorted(int(payload) for share in shares for payload in share) == list(range(20))


@pytest.mark.parametrize(("version", "code"), [(MQTTv311, 4), (MQTTv50, 0x86)], ids=["3.1.1", "5.0"])
@on_a_loop
async def test_a_wrong_password_is_refused(server: MqttServer, name: str, version: int, code: int) -> None:
    with pytest.raises(MQTTConnectError) as refused:
        async with connected(server, name, version, password="wrong"):
            pass
    assert refused.value._code == code
