"""Listing of STOMP connections with rabbitmqctl's columns."""

import json

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl


@pytest.fixture(autouse=True)
def connections(api: FakeApi) -> None:
    """A connection over TCP, one over WebSocket, and one of AMQP."""
    shared = {"user": "guest", "state": "running"}
    api.answer(
        "GET connections",
        [
            {"name": "one", "protocol": "STOMP 1.2", "client_properties": {"session": "session-1"}, **shared},
            {"name": "two", "protocol": "Web STOMP 1.0", "client_properties": {"session": "session-2"}, **shared},
            {"name": "three", "protocol": "AMQP 0-9-1", **shared},
        ],
    )


def test_the_default_columns_are_session_and_connection(ctl: Ctl) -> None:
    result = ctl("list_stomp_connections")
    rows = "session_id\tconn_name\nsession-1\tone\nsession-2\ttwo\n"
    assert (result.code, result.out) == (0, f"Listing STOMP connections ...\n{rows}")


def test_columns_are_those_of_rabbitmq(ctl: Ctl) -> None:
    result = ctl("list_stomp_connections", "conn_name", "protocol", "connection_state", "auth_login", "-s")
    assert result.out == "one\tSTOMP 1.2\trunning\tguest\ntwo\tWeb STOMP 1.0\trunning\tguest\n"


def test_verbose_shows_all_columns(ctl: Ctl) -> None:
    row, _ = json.loads(ctl("list_stomp_connections", "--verbose", "--formatter=json").out)
    assert {"session_id", "conn_name", "user", "vhost", "protocol", "ssl", "recv_oct"} <= row.keys()
