"""Real traffic of all protocols: clients that publish and consume in threads until they are stopped."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import paho.mqtt.client as mqtt
import pika
import stomp
from paho.mqtt.enums import CallbackAPIVersion

from tests import management_client
from tests.paho_loop import stop_loop
from tests.running import HOST, Gateway

#: Text that would run as a script if a page interpreted it as HTML.
MARKUP: Final = "<img src=x onerror=\"document.title='interpreted'\">"

#: A page of the pipeline, with a script that would change its title.
REPORT: Final = """<!doctype html><html lang="en"><title>rollup</title><style>h1 { color: rgb(1, 2, 3) }</style>
<h1>Daily means</h1><script>document.title = "interpreted"</script>"""

_PAUSE_S: Final = 0.1


def declare(gateway: Gateway) -> None:
    """Declare exchanges, queues, bindings, policies, users and virtual hosts of a small shop."""

    def put(path: str, **fields: Any) -> None:
        management_client.put(gateway, path, fields)

    for name, kind in (("orders", "topic"), ("audit", "fanout"), ("billing", "direct")):
        put(f"exchanges/%2F/{name}", type=kind, durable=True)
    put("queues/%2F/orders.new", durable=True, arguments={"x-dead-letter-exchange": "audit", "x-max-priority": 5})
    put("queues/%2F/orders.audit", durable=True)
    put("queues/%2F/invoices", durable=True, arguments={"x-message-ttl": 600_000, "x-single-active-consumer": True})
    put("queues/%2F/backlog", durable=True)
    put("queues/%2F/events", durable=True, arguments={"x-queue-type": "stream"})
    put("queues/%2F/" + "%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D%27interpreted%27%22%3E", durable=True)
    for source, kind, destination, key in (
        ("orders", "q", "orders.new", "order.*.new"),
        ("orders", "q", "orders.audit", "#"),
        ("orders", "q", "events", "order.#"),
        ("orders", "e", "audit", "order.*.paid"),
        ("orders", "e", "billing", "order.*.paid"),
        ("audit", "q", "orders.audit", ""),
        ("billing", "q", "invoices", "order.eu.paid"),
    ):
        management_client.request(
            gateway, "POST", f"bindings/%2F/e/{source}/{kind}/{destination}", {"routing_key": key}
        )
    definition = {"max-length": 10_000, "overflow": "reject-publish"}
    put("policies/%2F/limits", pattern="^orders\\.", definition=definition, priority=1, **{"apply-to": "queues"})
    put("operator-policies/%2F/cap", pattern=".*", definition={"expires": 86_400_000}, **{"apply-to": "queues"})
    put("vhosts/shop", description="The web shop")
    put("queues/shop/carts", durable=True)
    put("users/anna", password="anna", tags="monitoring")
    put("users/otto", password="otto", tags="management")
    put("users/reader", password="reader", tags="management")
    put("users/watcher", password="watcher", tags="monitoring")
    put("users/paula", password="paula", tags="policymaker")
    put("users/plain", password="plain", tags="")
    put("permissions/%2F/anna", configure=".*", write=".*", read=".*")
    put("permissions/%2F/reader", configure="", write="", read=".*")
    put("permissions/shop/otto", configure="^carts", write=".*", read="^carts")
    for _ in range(20):
        body = {"properties": {"headers": {"x-try": 1}}, "routing_key": "backlog", "payload_encoding": "string"}
        management_client.request(
            gateway, "POST", "exchanges/%2F/amq.default/publish", body | {"payload": json.dumps({"text": MARKUP})}
        )


def write_results(directory: Path) -> None:
    """Write what a job of the pipeline writes at its end; its report has a script, which must not run."""
    job = directory / "rollup"
    job.mkdir(parents=True)
    run = {
        "job": "rollup", "started": "2026-01-31T10:00:00+00:00", "finished": "2026-01-31T10:00:07+00:00",
        "options": {"queue": ["weather"], "window": "1 day"}, "figures": {"windows": 365},
        "warnings": ["3 readings were late"],
    }  # fmt: skip
    (job / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (job / "report.html").write_text(REPORT, encoding="utf-8")


@contextmanager
def traffic(gateway: Gateway) -> Iterator[None]:
    """Publish and consume by AMQP, MQTT and STOMP within the block."""
    stopped = threading.Event()
    runs: list[Callable[[Gateway, threading.Event], None]] = [_publish_amqp, _consume_amqp, _mqtt, _stomp]
    threads = [threading.Thread(target=run, args=(gateway, stopped), daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join(timeout=10)


def _amqp(gateway: Gateway, name: str) -> Any:
    host, port = gateway.addresses["amqp"]
    return pika.BlockingConnection(
        pika.ConnectionParameters(host, port, client_properties={"connection_name": name}, heartbeat=30)
    )


def _publish_amqp(gateway: Gateway, stopped: threading.Event) -> None:
    with _amqp(gateway, "order-service") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in _numbers(stopped):
            region, kind = ("eu", "us")[number % 2], ("new", "new", "paid")[number % 3]
            properties = pika.BasicProperties(content_type="application/json", delivery_mode=2, priority=number % 5)
            channel.basic_publish("orders", f"order.{region}.{kind}", b'{"order": %d}' % number, properties)


def _consume_amqp(gateway: Gateway, stopped: threading.Event) -> None:
    with _amqp(gateway, "billing-worker") as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=20)

        def settle(_: Any, method: Any, __: Any, ___: bytes) -> None:
            channel.basic_ack(method.delivery_tag)

        for queue in ("orders.new", "invoices"):
            channel.basic_consume(queue, settle, consumer_tag=f"worker-{queue}")
        channel.basic_consume("events", settle, consumer_tag="dashboard", arguments={"x-stream-offset": "first"})
        while not stopped.is_set():
            connection.process_data_events(time_limit=_PAUSE_S)


def _mqtt(gateway: Gateway, stopped: threading.Event) -> None:
    host, port = gateway.addresses["mqtt"]
    client: Any = mqtt.Client(CallbackAPIVersion.VERSION2, "thermostat-7", clean_session=False)
    client.username_pw_set("guest", "guest")
    client.connect(host, port)
    client.loop_start()
    client.subscribe([("house/+/set", 1), ("house/alarm", 0)])
    client.publish("house/kitchen/state", b'{"heating": true}', qos=1, retain=True)
    client.publish("house/hall/state", MARKUP.encode(), qos=1, retain=True)
    for number in _numbers(stopped):
        client.publish("house/kitchen/set", b"%d" % (18 + number % 5), qos=1)
        client.publish("house/kitchen/temperature", b"21.5", qos=0)
    client.disconnect()
    stop_loop(client)


def _stomp(gateway: Gateway, stopped: threading.Event) -> None:
    connection: Any = stomp.Connection12([gateway.addresses["stomp"]], vhost="/")
    connection.connect("guest", "guest", wait=True)
    connection.subscribe("/queue/tickets", id="tickets-1", ack="auto")
    for number in _numbers(stopped):
        connection.send("/queue/tickets", f"ticket {number}", headers={"persistent": "true"})
    connection.disconnect()


def _numbers(stopped: threading.Event) -> Iterator[int]:
    """Yield numbers at ten a second until stopped."""
    number = 0
    while not stopped.wait(_PAUSE_S):
        yield number
        number += 1


__all__ = ["HOST", "MARKUP", "declare", "traffic"]
