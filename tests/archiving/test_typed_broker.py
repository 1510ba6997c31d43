"""Typed tables of a broker: a policy selects one, and a changed schema is checked when the broker starts."""

import json
from pathlib import Path

import pika

from tests.broker.conftest import Connect, connect, gateway
from tests.columnar.iceberg_tables import query
from tests.management_client import get, put
from tests.running import Gateway
from tests.waiting import wait_until

__all__ = ["connect", "gateway"]


def settings(gateway: Gateway, **properties: object) -> list[str]:
    """Write the schema of the table ``orders``; return the settings."""
    directory: Path = gateway.data.parent / "schemas"
    directory.mkdir(exist_ok=True)
    (directory / "orders.json").write_text(json.dumps({"type": "object", "properties": properties}))
    return ["archive.format=iceberg", "archive.segment_age_s=1", f'archive.schemas="{directory}"']


def publish(connect: Connect, *bodies: bytes) -> None:
    channel = connect().channel()
    channel.confirm_delivery()
    channel.queue_declare("orders", durable=True)
    for body in bodies:
        channel.basic_publish("", "orders", body, pika.BasicProperties(delivery_mode=2))


def filed(gateway: Gateway) -> int:
    return int(get(gateway, "archives")[0]["filed_offset"])


def test_orders_have_columns_and_a_changed_schema_evolves_the_table(gateway: Gateway, connect: Connect) -> None:
    gateway.start(*settings(gateway, total={"type": "integer", "format": "int32"}))
    put(
        gateway,
        "policies/%2F/keep",
        {"pattern": "^orders$", "definition": {"archive": True, "archive-table": "orders"}},
    )
    publish(connect, b'{"total": 5}', b"junk")
    wait_until(lambda: filed(gateway) == 2, lambda: "not filed", timeout_s=60)
    assert query(gateway.data, "source_name, total", "orders") == [("orders", 5)]
    assert query(gateway.data, 'body, "table"', "dead_letters") == [(b"junk", "orders")]
    assert get(gateway, "archives")[0]["table"] == "orders"
    gateway.stop()
    gateway.start(*settings(gateway, total={"type": "integer"}, paid={"type": "boolean"}))
    publish(connect, b'{"total": 5000000000, "paid": true}')
    wait_until(lambda: filed(gateway) == 3, lambda: "not filed", timeout_s=60)
    assert sorted(query(gateway.data, "total, paid", "orders")) == [(5, None), (5_000_000_000, True)]


def test_a_redacted_part_is_in_the_columns_or_makes_a_dead_letter(gateway: Gateway, connect: Connect) -> None:
    """Redaction comes before the schema: a string stays one, and a number does not."""
    rules = 'archive.redact=["orders * $.card", "orders * $.total"]'
    gateway.start(*settings(gateway, card={"type": "string"}, total={"type": "integer"}), rules)
    put(
        gateway,
        "policies/%2F/keep",
        {"pattern": "^orders$", "definition": {"archive": True, "archive-table": "orders"}},
    )
    publish(connect, b'{"card": "4111"}', b'{"card": "4112", "total": 7}')
    wait_until(lambda: filed(gateway) == 2, lambda: "not filed", timeout_s=60)
    assert query(gateway.data, "card, total, body", "orders") == [("***", None, b'{"card":"***"}')]
    assert query(gateway.data, "body", "dead_letters") == [(b'{"card":"***","total":"***"}',)]
