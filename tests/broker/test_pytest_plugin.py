"""The fixture ``gateway_broker``, as an outside project uses it."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "plugins" / "testing.md"

OUTSIDE = """
import time
import pika

def connect(broker):
    return pika.BlockingConnection(pika.URLParameters(broker.amqp_url))

def test_publish(gateway_broker):
    connection = connect(gateway_broker)
    channel = connection.channel()
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"one")
    assert channel.basic_get("q", auto_ack=True)[2] == b"one"
    connection.close()

def test_another_virtual_host(gateway_broker):
    assert gateway_broker.request("GET", "queues", gateway_broker.vhost) == []
    gateway_broker.enable("exchange-modulus-hash")
    connection = connect(gateway_broker)
    connection.channel().exchange_declare("e", "x-modulus-hash")
    connection.close()
    assert {gateway_broker.amqp_port, gateway_broker.mqtt_port, gateway_broker.stomp_port} != {0}

def test_the_second_use_is_fast(gateway_process):
    from gateway.testing.pytest_plugin import TestBroker
    started = time.perf_counter()
    TestBroker(gateway_process, gateway_process.new_vhost())
    assert time.perf_counter() - started < 1
"""


def test_an_outside_project_uses_the_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OUTSIDE)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=60)
    assert result.parseoutcomes() == {"passed": 3}


def test_the_test_of_the_page_passes(pytester: pytest.Pytester) -> None:
    found = re.search(r"```python\n# test_orders.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    pytester.makepyfile(found[1])
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=60)
    assert result.parseoutcomes() == {"passed": 1}
