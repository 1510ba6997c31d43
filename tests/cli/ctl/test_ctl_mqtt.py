"""The lists of MQTT connections: rabbitmqctl's columns, out of the API's connections."""

import json

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl


def connection(name: str, protocol: str, **fields: object) -> dict[str, object]:
    return {"name": name, "protocol": protocol, "user": "guest", "state": "running", **fields}


@pytest.fixture(autouse=True)
def connections(api: FakeApi) -> None:
    """A client by each way, and one of AMQP."""
    api.answer(
        "GET connections",
        [
            connection("one", "MQTT 3-1-1", variable_map={"client_id": "sensor"}, timeout=40),
            connection("two", "Web MQTT 5-0", variable_map={"client_id": "page"}, timeout=60),
            connection("three", "AMQP 0-9-1"),
        ],
    )


def test_client_and_connection_are_shown_unless_asked_otherwise(ctl: Ctl) -> None:
    ended = ctl("list_mqtt_connections")
    assert (ended.code, ended.out) == (0, "Listing MQTT connections ...\nclient_id\tconn_name\nsensor\tone\n")


def test_those_over_websocket_have_a_list_of_their_own(ctl: Ctl) -> None:
    ended = ctl("list_web_mqtt_connections")
    assert ended.out == "Listing Web MQTT connections ...\nclient_id\tconn_name\npage\ttwo\n"


def test_columns_are_those_of_rabbitmq(ctl: Ctl) -> None:
    ended = ctl("list_mqtt_connections", "client_id", "protocol", "connection_state", "keepalive", "connection", "-s")
    assert ended.out == "sensor\tMQTT 3-1-1\trunning\t40\tone\n"


def test_verbose_shows_all_columns(ctl: Ctl) -> None:
    ended = ctl("list_mqtt_connections", "--verbose", "--formatter=json")
    (row,) = json.loads(ended.out)
    assert {"client_id", "conn_name", "user", "vhost", "protocol", "ssl", "recv_oct", "keepalive"} <= row.keys()


def test_a_column_that_is_not_there_is_answered_with_those_that_are(ctl: Ctl) -> None:
    ended = ctl("list_mqtt_connections", "nonsense")
    assert ended.code == 64
    assert "nonsense" in ended.err
    assert "client_id" in ended.err
