"""aiomqtt: messages, sessions, refusals and wills."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from socket import SHUT_RDWR
from typing import Any

import aiomqtt
import pytest
from aiomqtt import Message, ProtocolVersion
from paho.mqtt.packettypes import PacketTypes

from tests.interop.amqp_clients.test_aio_pika import on_a_loop
from tests.interop.mqtt_clients.mqtt_server import MqttServer
from tests.interop.mqtt_clients.paho_client import properties_of

VERSIONS = pytest.mark.parametrize("version", [ProtocolVersion.V31, ProtocolVersion.V311, ProtocolVersion.V5])


@asynccontextmanager
async def connected(server: MqttServer, **options: Any) -> AsyncIterator[aiomqtt.Client]:
    settings: dict[str, Any] = {
        "username": server.user,
        "password": server.password,
        "timeout": 5,
        "protocol": ProtocolVersion.V5,
    }
    async with aiomqtt.Client(server.host, server.port, **(settings | options)) as client:
        yield client


async def received(client: aiomqtt.Client, count: int = 1) -> list[Message]:
    messages = aiter(client.messages)
    return [await anext(messages) for _ in range(count)]


@VERSIONS
@on_a_loop
async def test_messages_of_every_qos(server: MqttServer, name: str, version: ProtocolVersion) -> None:
    async with connected(server, protocol=version, identifier=name) as client:
        await client.subscribe(f"{name}/#", qos=2)
        for qos in range(3):
            await client.publish(f"{name}/{qos}", f"hello {qos}", qos=qos)
        messages = await received(client, 3)
    assert [(message.topic.value, message.payload, message.qos) for message in messages] == [
        (f"{name}/{qos}", f"hello {qos}".encode(), qos) for qos in range(3)
    ]


@on_a_loop
async def test_messages_wait_for_a_client_that_reconnects(server: MqttServer, name: str) -> None:
    kept = {
        "identifier": name,
        "clean_start": False,
        "properties": properties_of(PacketTypes.CONNECT, SessionExpiryInterval=600),
    }
    async with connected(server, **kept) as sleeper:
        await sleeper.subscribe(name, qos=1)
    async with connected(server) as other:
        for number in range(10):
            await other.publish(name, str(number), qos=1)
    async with connected(server, **kept) as back:
        assert [message.payload for message in await received(back, 10)] == [b"%d" % number for number in range(10)]


@on_a_loop
async def test_a_will_with_properties(server: MqttServer, name: str) -> None:
    will_properties = properties_of(
        PacketTypes.WILLMESSAGE, ContentType="text/plain", UserProperty=[("why", "silence")]
    )
    will = aiomqtt.Will(name, b"gone", qos=1, properties=will_properties)
    async with connected(server) as witness:
        await witness.subscribe(name, qos=1)
        with suppress(aiomqtt.MqttError):  # any error about the lost connection
            async with connected(server, will=will) as mortal:
                line: Any = mortal._client.socket()
                line.shutdown(SHUT_RDWR)  # cuts the network
        (message,) = await received(witness)
    properties: Any = message.properties
    assert (message.payload, properties.ContentType) == (b"gone", "text/plain")
    assert properties.UserProperty == [("why", "silence")]


@on_a_loop
async def test_many_tasks_share_a_connection(server: MqttServer, name: str) -> None:
    async with connected(server) as client:
        await client.subscribe(f"{name}/+", qos=1)
        async with asyncio.TaskGroup() as tasks:
            for number in range(200):
                tasks.create_task(client.publish(f"{name}/{number}", b"x", qos=1))
        topics = {message.topic.value for message in await received(client, 200)}
    assert topics == {f"{name}/{number}" for number in range(200)}


@VERSIONS
@on_a_loop
async def test_a_wrong_password_is_refused(server: MqttServer, name: str, version: ProtocolVersion) -> None:
    with pytest.raises(aiomqtt.MqttCodeError) as refused:
        async with connected(server, protocol=version, identifier=name, password="wrong"):
            pass
    code = refused.value.rc
    assert getattr(code, "value", code) == 0x86
