"""The examples of README.md and of the pages about MQTT and STOMP, run unchanged except for the ports."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pika
import pytest

from tests.interop.gateways import gateway_in
from tests.running import Gateway

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "README.md"
MQTT_PAGE: Final = ROOT / "docs/protocols/mqtt.md"
STOMP_PAGE: Final = ROOT / "docs/protocols/stomp.md"
TIMEOUT_S: Final = 20


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with gateway_in(tmp_path) as gateway:
        yield gateway


def example(language: str, about: str, gateway: Gateway, page: Path = PAGE) -> str:
    """Return the only example in a language that contains a text, with this gateway's ports."""
    (found,) = (text for text in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL) if about in text)
    amqp, mqtt, stomp = (gateway.addresses[listener][1] for listener in ("amqp", "mqtt", "stomp"))
    found = found.replace("61613", str(stomp))
    found = found.replace("BlockingConnection()", f'BlockingConnection(pika.ConnectionParameters("127.0.0.1", {amqp}))')
    found = found.replace("amqp://localhost", f"amqp://127.0.0.1:{amqp}")
    return re.sub(r"(mosquitto_\w+)", rf"\1 -h 127.0.0.1 -p {mqtt}", found)


def test_the_first_example_prints_its_message(gateway: Gateway) -> None:
    program = [sys.executable, "-c", example("python", "Hello World!", gateway)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert ended.stdout == "b'Hello World!'\n"


def test_a_first_message_over_stomp(gateway: Gateway) -> None:
    program = [sys.executable, "-c", example("python", "stomp", gateway, STOMP_PAGE)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert ended.stdout == "Hello World!\n"


def test_a_first_message_over_mqtt(gateway: Gateway) -> None:
    commands = example("sh", "sensors/hall", gateway, MQTT_PAGE)
    program = ["bash", "-e", "-c", commands]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert ended.stdout == "21.5\n"


def test_sensors_and_the_office(gateway: Gateway) -> None:
    commands = example("sh", "sensors/hall", gateway)
    with subprocess.Popen(
        [sys.executable, "-c", example("python", "readings", gateway)], stdout=subprocess.PIPE, text=True
    ) as office:
        try:
            _wait_for_queue(gateway, "readings")
            ended = subprocess.run(
                ["bash", "-e", "-c", commands], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
            )
            assert office.stdout is not None
            assert office.stdout.readline() == "sensors.hall 21.5 text/plain\n"
        finally:
            office.kill()
    assert ended.stdout == "lamps/hall on\n"


def _wait_for_queue(gateway: Gateway, name: str) -> None:
    """Wait until the queue has a consumer."""
    with pika.BlockingConnection(pika.ConnectionParameters(*gateway.addresses["amqp"])) as connection:
        channel = connection.channel()
        declared = channel.queue_declare(name, durable=True)
        while not declared.method.consumer_count:
            connection.process_data_events(time_limit=0.05)
            declared = channel.queue_declare(name, durable=True)
