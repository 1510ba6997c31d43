"""The API of a complete gateway, over loopback."""

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import HOST, Gateway

AUTHORIZATION = f"Basic {base64.b64encode(b'guest:guest').decode()}"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path)
    yield gateway.start()
    gateway.end()


@pytest.fixture
def connection(gateway: Gateway) -> Iterator[http.client.HTTPConnection]:
    connection = connected(gateway)
    yield connection
    connection.close()


def connected(gateway: Gateway) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(HOST, gateway.addresses["management"][1], timeout=10)


def ask(connection: http.client.HTTPConnection, method: str, path: str, fields: object = None) -> tuple[int, Any]:
    body = None if fields is None else json.dumps(fields)
    connection.request(method, f"/api{path}", body, {"Authorization": AUTHORIZATION})
    answer = connection.getresponse()
    content = answer.read()
    return answer.status, json.loads(content) if content else None


def test_a_connection_takes_several_requests(connection: http.client.HTTPConnection) -> None:
    assert ask(connection, "PUT", "/queues/%2F/q", {"durable": True}) == (201, None)
    assert ask(connection, "PUT", "/queues/%2F/q", {"durable": True}) == (204, None)
    assert ask(connection, "GET", "/queues/%2F/q")[1]["durable"] is True
    assert ask(connection, "GET", "/nowhere")[0] == 404
    assert ask(connection, "GET", "/overview")[1]["object_totals"]["queues"] == 1


def test_an_acknowledged_change_survives_a_kill(gateway: Gateway, connection: http.client.HTTPConnection) -> None:
    assert ask(connection, "PUT", "/vhosts/shop", {"description": "kept"})[0] == 201
    assert ask(connection, "PUT", "/vhost-limits/shop/max-queues", {"value": 7})[0] == 204
    assert ask(connection, "PUT", "/queues/shop/q", {"durable": True})[0] == 201
    rule = {"pattern": "q", "definition": {"max-length": 3}}
    assert ask(connection, "PUT", "/policies/shop/p", rule)[0] == 201
    message = {
        "properties": {"delivery_mode": 2}, "routing_key": "q", "payload": "kept", "payload_encoding": "string",
    }  # fmt: skip
    assert ask(connection, "POST", "/exchanges/shop/amq.default/publish", message) == (200, {"routed": True})
    again = connected(gateway.restart())
    assert ask(again, "GET", "/vhosts/shop")[1]["description"] == "kept"
    assert ask(again, "GET", "/vhost-limits/shop")[1] == [{"vhost": "shop", "value": {"max-queues": 7}}]
    queue = ask(again, "GET", "/queues/shop/q")[1]
    assert (queue["messages"], queue["policy"]) == (1, "p")
    again.close()


def test_a_disabled_port_has_no_listener(gateway: Gateway) -> None:
    gateway.restart("management.port=off")
    assert "management" not in gateway.addresses
