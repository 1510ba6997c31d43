"""Programs of real clients, each on the port of a relay, with the user guest. They end by themselves."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import aio_pika
import amqp
import amqpstorm
import gmqtt
import paho.mqtt.client as paho
import pika
import stomp
from gmqtt.mqtt.constants import MQTTv50, MQTTv311
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.interop import node_package
from tests.interop.tools import program
from tests.paho_loop import stop_loop
from tests.waiting import wait_until

Program: TypeAlias = Callable[[int], None]
"""Runs a client against the broker on this port."""

HOST: Final = "127.0.0.1"
_TIMEOUT_S: Final = 30


def _run(*command: str, stdin: bytes = b"") -> None:
    """Run a program and ignore its output."""
    subprocess.run(command, input=stdin, capture_output=True, timeout=_TIMEOUT_S, check=False)


# ---- AMQP 0-9-1 -----------------------------------------------------------------------------------------------------


def _pika(port: int) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters(HOST, port, heartbeat=30)) as connection:
        channel = connection.channel()
        channel.exchange_declare("e", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})
        arguments = {"x-max-length": 10, "x-message-ttl": 60_000, "x-dead-letter-exchange": "amq.direct"}
        channel.queue_declare("pika", durable=True, arguments=arguments)
        channel.queue_bind("pika", "e", "a.#", {"x": 1})
        channel.confirm_delivery()
        headers = {"text": "a", "number": 1, "large": 2**40, "flag": True, "list": [1, "b"], "table": {"c": None}}
        properties = pika.BasicProperties(
            "text/plain", "utf-8", headers, 2, 5, "c", "r", "60000", "m", 1_700_000_000, "t", "guest", "app", ""
        )
        channel.basic_publish("e", "a.b", b"hello", properties)
        channel.basic_publish("", "pika", b"", pika.BasicProperties(headers={"CC": ["pika"], "BCC": ["x"]}))
        channel.basic_qos(prefetch_count=2)
        for method, _, _ in channel.consume("pika", inactivity_timeout=1):
            if method is None:
                break
            channel.basic_nack(method.delivery_tag, requeue=False)
            break
        channel.cancel()
        channel.basic_get("pika", auto_ack=True)
        channel.queue_purge("pika")
        transacted = connection.channel()
        transacted.tx_select()
        transacted.basic_publish("", "pika", b"x" * 100)
        transacted.tx_commit()
        transacted.tx_rollback()
        channel.queue_unbind("pika", "e", "a.#", {"x": 1})
        channel.exchange_delete("e")
        channel.queue_delete("pika")


def _aio_pika(port: int) -> None:
    async def conversation() -> None:
        connection = await aio_pika.connect(host=HOST, port=port)
        async with connection:
            channel = await connection.channel()
            await channel.set_qos(1)
            queue = await channel.declare_queue("aio", exclusive=True, arguments={"x-queue-type": "classic"})
            exchange = await channel.declare_exchange("aio-e", aio_pika.ExchangeType.HEADERS, auto_delete=True)
            await queue.bind(exchange, arguments={"x-match": "all", "k": "v"})
            await exchange.publish(aio_pika.Message(b"hi", headers={"k": "v"}, message_id="1"), routing_key="")
            message = await queue.get(timeout=5)
            await message.ack()
            await queue.consume(lambda delivered: None, no_ack=True)

    asyncio.run(conversation())


def _py_amqp(port: int) -> None:
    with amqp.Connection(f"{HOST}:{port}") as connection:
        channel = connection.channel()
        channel.queue_declare("py", durable=False, auto_delete=False)
        channel.basic_publish_confirm(amqp.Message("text", application_headers={"a": 1}), routing_key="py")
        message = channel.basic_get("py")
        channel.basic_reject(message.delivery_tag, requeue=False)
        channel.flow(True)
        channel.basic_recover(requeue=True)
        channel.queue_delete("py")


def _amqpstorm(port: int) -> None:
    with amqpstorm.Connection(HOST, "guest", "guest", port=port) as connection, connection.channel() as channel:
        channel.queue.declare("storm", arguments={"x-max-priority": 5})
        channel.basic.publish(b"storm", "storm", properties={"priority": 3, "headers": {"key": "value"}})
        channel.basic.get("storm", no_ack=True)
        channel.queue.delete("storm")


def _amqp_tools(port: int) -> None:
    url = f"--url=amqp://guest:guest@{HOST}:{port}/"
    _run(program("amqp-declare-queue"), url, "--queue=tools", "--durable")
    _run(program("amqp-publish"), url, "--routing-key=tools", "--persistent", "--body=rabbitmq-c", "--header=a: b")
    _run(program("amqp-get"), url, "--queue=tools")
    _run(program("amqp-delete-queue"), url, "--queue=tools")


# ---- MQTT -----------------------------------------------------------------------------------------------------------


def _paho(version: int) -> Program:
    def run(port: int) -> None:
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, f"paho-{version}", protocol=version)
        client.username_pw_set("guest", "guest")
        is_five = version == paho.MQTTv5
        properties: Any = None
        options: dict[str, Any] = {}
        if is_five:
            options["properties"] = Properties(PacketTypes.CONNECT)
            options["properties"].SessionExpiryInterval = 60
            options["properties"].ReceiveMaximum = 20
            options["properties"].UserProperty = ("client", "paho")
            properties = Properties(PacketTypes.PUBLISH)
            properties.ContentType, properties.ResponseTopic, properties.CorrelationData = "text/plain", "answers", b"7"
            properties.MessageExpiryInterval, properties.UserProperty = 60, ("a", "b")
        client.will_set("wills/paho", b"gone", 1, True)
        received: list[object] = []
        subscribed: list[object] = []
        client.on_message = lambda *message: received.append(message)
        client.on_subscribe = lambda *granted: subscribed.append(granted)
        client.connect(HOST, port, 30, **options)
        client.loop_start()
        client.subscribe([("a/+/c", 2), ("$SYS/broker/version", 0)])
        wait_until(lambda: subscribed, "no SUBACK")
        for qos in range(3):
            client.publish("a/b/c", f"qos {qos}", qos, retain=qos == 1, properties=properties).wait_for_publish(10)
        wait_until(lambda: len(received) >= 3, "no PUBLISH")
        client.unsubscribe("a/+/c")
        client.publish("a/b/c", b"", 1, retain=True).wait_for_publish(10)
        client.disconnect()
        stop_loop(client)

    return run


def _gmqtt(version: int) -> Program:
    def run(port: int) -> None:
        async def conversation() -> None:
            client = gmqtt.Client(f"gmqtt-{version}", session_expiry_interval=60, receive_maximum=5)
            client.set_auth_credentials("guest", "guest")
            received = asyncio.Event()
            client.on_message = lambda *message: received.set() or 0
            await client.connect(HOST, port, keepalive=30, version=version)
            client.subscribe("g/#", qos=1)
            client.publish("g/1", {"json": True}, qos=1, user_property=("a", "b"), topic_alias=1)
            await asyncio.wait_for(received.wait(), 10)
            await client.disconnect()

        asyncio.run(conversation())

    return run


def _mosquitto(port: int) -> None:
    common = ["-h", HOST, "-p", str(port), "-u", "guest", "-P", "guest"]
    for version in ("mqttv31", "mqttv311", "mqttv5"):
        options = [*common, "-V", version, "-q", "2"]
        extra = ["-D", "publish", "user-property", "a", "b"] if version == "mqttv5" else []
        _run(program("mosquitto_pub"), *options, "-t", "m/1", "-m", "hi", "-r", *extra)
        _run(program("mosquitto_sub"), *options, "-t", "m/#", "-C", "1", "-W", "5", "-i", f"sub-{version}")
        _run(program("mosquitto_pub"), *options, "-t", "m/1", "-n", "-r", "--will-topic", "w", "--will-payload", "x")


def _node(file: str, url: str, *, most: int = 12) -> Program:
    """Return the scenarios of a file of the interoperability tests."""

    def run(port: int) -> None:
        node_package.install()
        for sentence in node_package.sentences(file)[:most]:
            address = url.format(login="guest:guest", host=HOST, port=port)
            command = [program("node"), "run.mjs", file, address, sentence]
            subprocess.run(command, cwd=node_package.PACKAGE, capture_output=True, timeout=_TIMEOUT_S, check=False)

    return run


# ---- STOMP ----------------------------------------------------------------------------------------------------------


class _Listener(stomp.ConnectionListener):
    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.receipts: list[str] = []

    def on_message(self, frame: Any) -> None:
        self.messages.append(frame)

    def on_receipt(self, frame: Any) -> None:
        self.receipts.append(frame.headers["receipt-id"])


def _stomp_py(kind: Any) -> Program:
    def run(port: int) -> None:
        is_first = kind is stomp.StompConnection10
        connection = kind([(HOST, port)], **({} if is_first else {"heartbeats": (30_000, 30_000), "vhost": "/"}))
        listener = _Listener()
        connection.set_listener("", listener)
        connection.connect("guest", "guest", wait=True)
        connection.subscribe("/queue/stomp.py", "1", ack="client", headers={"prefetch-count": "1", "receipt": "s"})
        headers = {"persistent": "true", "priority": "4", **({} if is_first else {"a:b": "c\nd"})}
        connection.send("/queue/stomp.py", "body", "text/plain", headers=headers)
        wait_until(lambda: listener.messages, "no MESSAGE")
        headers = listener.messages[0].headers
        connection.ack(headers.get("ack", headers["message-id"]), *(["1"] if kind is stomp.StompConnection11 else []))
        transaction = connection.begin()
        connection.send("/topic/a.b", b"in a transaction", transaction=transaction, receipt="t")
        connection.commit(transaction)
        wait_until(lambda: "t" in listener.receipts, "no RECEIPT")
        connection.abort(connection.begin())
        connection.unsubscribe("1")
        connection.send("/nowhere", b"an error")
        connection.disconnect()

    return run


# ---- HTTP -----------------------------------------------------------------------------------------------------------


def _rabbitmqadmin(port: int) -> None:
    for words in (
        ["declare", "queue", "name=admin", "durable=true", 'arguments={"x-max-length": 5}'],
        ["declare", "exchange", "name=admin", "type=topic"],
        ["declare", "binding", "source=admin", "destination=admin", "routing_key=a.#"],
        ["declare", "policy", "name=p", "pattern=^admin", 'definition={"max-length": 5}', "apply-to=queues"],
        ["declare", "user", "name=u", "password=p", "tags=monitoring"],
        ["declare", "permission", "vhost=/", "user=u", "configure=.*", "write=.*", "read=.*"],
        ["declare", "parameter", "component=limits", "name=x", "value={}"],
        ["publish", "exchange=admin", "routing_key=a.b", "payload=hello", 'properties={"delivery_mode": 2}'],
        ["get", "queue=admin", "ackmode=ack_requeue_false"],
        ["list", "queues", "name", "messages"], ["list", "exchanges"], ["list", "users"], ["show", "overview"],
        ["export", "/dev/stdout"], ["delete", "policy", "name=p"], ["delete", "queue", "name=admin"],
    ):  # fmt: skip
        _run(sys.executable, program("rabbitmqadmin"), f"--host={HOST}", f"--port={port}", *words)


#: By protocol, the listener of the gateway and the clients by name.
CLIENTS: Final[dict[str, tuple[str, dict[str, Program]]]] = {
    "amqp": (
        "amqp",
        {
            "pika": _pika, "aio-pika": _aio_pika, "py-amqp": _py_amqp, "amqpstorm": _amqpstorm,
            "rabbitmq-c": _amqp_tools,
            "amqplib": _node("amqp.mjs", "amqp://{login}@{host}:{port}"),
        },
    ),
    "mqtt": (
        "mqtt",
        {
            "paho-3.1": _paho(paho.MQTTv31), "paho-3.1.1": _paho(paho.MQTTv311), "paho-5": _paho(paho.MQTTv5),
            "gmqtt-3.1.1": _gmqtt(MQTTv311), "gmqtt-5": _gmqtt(MQTTv50), "mosquitto": _mosquitto,
            "mqtt.js": _node("mqtt.mjs", "mqtt://{login}@{host}:{port}"),
        },
    ),
    "stomp": (
        "stomp",
        {
            "stomp.py-1.0": _stomp_py(stomp.StompConnection10), "stomp.py-1.1": _stomp_py(stomp.StompConnection11),
            "stomp.py-1.2": _stomp_py(stomp.StompConnection12),
            "stompit": _node("stompit.mjs", "stomp://{login}@{host}:{port}"),
        },
    ),
    "http": ("management", {"rabbitmqadmin": _rabbitmqadmin}),
    "websocket": ("web_mqtt", {"mqtt.js": _node("mqtt.mjs", "ws://{login}@{host}:{port}/ws", most=5)}),
}  # fmt: skip


def run_with_limit(run: Program, port: int) -> str:
    """Run a client in a thread; return its fault, empty if it ended well."""
    fault: list[str] = []

    def guarded() -> None:
        try:
            run(port)
        except Exception as error:
            fault.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(_TIMEOUT_S * 8)
    return "it did not end" if thread.is_alive() else "".join(fault)
