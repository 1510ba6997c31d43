"""Listings of MQTT connections with rabbitmqctl's columns."""

import json

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl


def connection(name: str, protocol: str, **fields: object) -> dict[str, object]:
    return {"name": name, "protocol": protocol, "user": "guest", "state": "running", **fields}


@pytest.fixture(autouse=True)
def connections(api: FakeApi) -> None:
    """A connection over TCP, one over WebSocket, and one of AMQP."""
    api.answer(
        "GET connections",
        [
            connection("one", "MQTT 3-1-1", variable_map={"client_id": "sensor"}, timeout=40),
            connection("two", "Web MQTT 5-0", variable_map={"client_id": "page"}, timeout=60),
            connection("three", "AMQP 0-9-1"),
        ],
    )


def test_the_default_columns_are_client_and_connection(ctl: Ctl) -> None:
    result = ctl("list_mqtt_connections")
    assert (result.code, result.out) == (0, "Listing MQTT connections ...\nclient_id\tconn_name\nsensor\tone\n")


def test_connections_over_websocket_have_a_listing_of_their_own(ctl: Ctl) -> None:
    result = ctl("list_web_mqtt_connections")
    assert result.out == "Listing Web MQTT connections ...\nclient_id\tconn_name\npage\ttwo\n"


def test_columns_are_those_of_rabbitmq(ctl: Ctl) -> None:
    result = ctl("list_mqtt_connections", "client_id", "protocol", "connection_state", "keepalive", "connection", "-s")
    assert result.out == "sensor\tMQTT 3-1-1\trunning\t40\tone\n"


def test_verbose_shows_all_columns(ctl: Ctl) -> None:
    result = ctl("list_mqtt_connections", "--verbose", "--formatter=json")
    (row,) = json.loads(result.out)
    assert {"client_id", "conn_name", "user", "vhost", "protocol", "ssl", "recv_oct", "keepalive"} <= row.keys()


def test_the_error_for_an_unknown_column_lists_the_supported_ones(ctl: Ctl) -> None:
    result = ctl("list_mqtt_connections", "nonsense")
    assert result.code == 64
    assert "nonsense" in result.err
    assert "client_id" in result.err
