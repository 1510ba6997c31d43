"""The fixture ``gateway_broker``, as an outside project uses it."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"

OUTSIDE = """
import time
import pika
import pytest

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
    times = []
    for _ in range(10):
        started = time.perf_counter()
        TestBroker(gateway_process, gateway_process.new_vhost())
        times.append(time.perf_counter() - started)
    assert min(times) < 0.1

def test_without_a_fake_clock_the_error_says_how_to_get_one(gateway_broker):
    with pytest.raises(RuntimeError, match="gateway_fake_clock"):
        gateway_broker.advance(1)
"""

CLOCKED = """
import pika

def test_delays_leases_and_expiry_follow_the_clock(gateway_broker):
    connection = pika.BlockingConnection(pika.URLParameters(gateway_broker.amqp_url))
    channel = connection.channel()
    channel.confirm_delivery()  # the clock advances after the messages have arrived
    channel.queue_declare("dead")
    channel.queue_declare("short", arguments={"x-expires": 86_400_000})
    channel.exchange_declare("late", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    channel.queue_bind("dead", "late")
    for hours in (3, 1, 2):
        headers = {"x-delay": hours * 3_600_000}
        channel.basic_publish("late", "", b"%d" % hours, pika.BasicProperties(headers=headers))
    bodies = []
    for _ in range(3):
        gateway_broker.advance(3600)
        bodies.append(channel.basic_get("dead", auto_ack=True)[2])
        assert channel.basic_get("dead")[0] is None
    assert bodies == [b"1", b"2", b"3"]
    gateway_broker.advance(86_400)
    names = [queue["name"] for queue in gateway_broker.request("GET", "queues", gateway_broker.vhost)]
    assert names == ["dead"]
    connection.close()
"""


def test_an_outside_project_uses_the_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OUTSIDE)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=60)
    assert result.parseoutcomes() == {"passed": 4}


def test_an_outside_project_advances_the_clock(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(example("conftest.py"))
    pytester.makepyfile(test_clock=CLOCKED, test_expiry=example("test_expiry.py"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=60)
    assert result.parseoutcomes() == {"passed": 2}


def example(file: str) -> str:
    """Return the code of the page for a file."""
    (code,) = re.findall(rf"```python\n# {re.escape(file)}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(code)


def test_the_tests_of_the_page_pass_with_pika_paho_and_stomp_py(pytester: pytest.Pytester) -> None:
    names = ("test_orders", "test_devices", "test_legacy", "test_confirms")
    pytester.makepyfile(**{name: example(f"{name}.py") for name in names})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=120)
    assert result.parseoutcomes() == {"passed": 4}


def test_the_program_of_the_page_prints_the_queue(pytester: pytest.Pytester) -> None:
    program = pytester.makepyfile(orders_in_a_block=example("orders_in_a_block.py"))
    result = pytester.runpython(program)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["frozenset({'paid'})"])
