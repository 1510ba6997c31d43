"""``message_size_stats``: the histogram of the metrics as RabbitMQ's table."""

import pytest

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.errors import Declined
from gateway.cli.ctl.listeners import Listener
from gateway.cli.ctl.verbs.node.message_sizes import metrics_address, size_rows
from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

METRICS = """\
# TYPE rabbitmq_message_size_bytes histogram
rabbitmq_message_size_bytes_bucket{protocol="amqp091",le="100.0"} 3.0
rabbitmq_message_size_bytes_bucket{protocol="amqp091",le="1000.0"} 4.0
rabbitmq_message_size_bytes_bucket{protocol="amqp091",le="+Inf"} 4.0
rabbitmq_message_size_bytes_bucket{protocol="mqtt50",le="100.0"} 0.0
rabbitmq_message_size_bytes_bucket{protocol="mqtt50",le="1000.0"} 0.0
rabbitmq_message_size_bytes_bucket{protocol="mqtt50",le="+Inf"} 4.0
rabbitmq_message_size_bytes_count{protocol="amqp091"} 4.0
"""


def test_the_sizes_of_all_protocols_are_counted_by_range() -> None:
    assert size_rows(METRICS) == [
        {"Message Size": "below 100B", "Count": 3, "Percentage": "37.50"},
        {"Message Size": "between 100B and 1KB", "Count": 1, "Percentage": "12.50"},
        {"Message Size": "above 1KB", "Count": 4, "Percentage": "50.00"},
    ]


PLACES = [
    #   API, interface of the metrics, address that is asked
    ("http://127.0.0.1:15672", "0.0.0.0", "http://127.0.0.1:15692"),
    ("http://[::1]:15672", "127.0.0.1", "http://127.0.0.1:15692"),
    ("http://broker.example.com", "::", "http://broker.example.com:15692"),
    ("http://broker.example.com", "127.0.0.1", None),
]


@pytest.mark.parametrize(("api", "interface", "expected"), PLACES)
def test_the_metrics_are_asked_at_the_broker_and_not_at_this_machine(
    api: str, interface: str, expected: str | None
) -> None:
    listeners = [Listener("::", 15672, "http"), Listener(interface, 15692, "http/prometheus")]
    if expected is None:
        with pytest.raises(Declined, match=r"are served at 127\.0\.0\.1 only"):
            metrics_address(ApiAddress.parse(api), listeners)
    else:
        assert metrics_address(ApiAddress.parse(api), listeners).url == expected


def test_the_table_has_rabbitmqs_columns(ctl: Ctl, api: FakeApi) -> None:
    listener = {"protocol": "http/prometheus", "ip_address": "127.0.0.1", "port": api.port}
    api.answer("GET overview", {"node": "gateway@here", "listeners": [listener]})
    api.answers["GET /metrics"] = (200, METRICS.encode())
    printed = ctl("message_size_stats", "--quiet").out.splitlines()
    assert printed[:2] == ["Message Size\tCount\tPercentage", "below 100B\t3\t37.50"]


def test_a_broker_without_metrics_is_named(ctl: Ctl) -> None:
    result = ctl("message_size_stats")
    assert (result.code, result.err) == (69, "Error: the broker has no listener for metrics: prometheus.port\n")
