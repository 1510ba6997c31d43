"""Parameters of shovels, and RabbitMQ's error texts for invalid ones."""

from typing import Any

import pytest

from gateway.bridges.broker_uri import InvalidUri, parse_uri, without_secrets
from gateway.bridges.shovel_definition import shovel_of
from gateway.bridges.transfer import ShovelAckMode
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.records.topology import ParameterRecord

VALID: dict[str, Any] = {"src-uri": "amqp://", "src-queue": "q", "dest-uri": ["amqp://a", "amqps://b"]}


def record(**changes: Any) -> ParameterRecord:
    value = VALID | {key.replace("_", "-"): item for key, item in changes.items()}
    return ParameterRecord("/", "shovel", "s", {key: item for key, item in value.items() if item is not None})


def test_defaults_are_those_of_rabbitmq() -> None:
    shovel = shovel_of(record())
    assert (shovel.ack_mode, shovel.prefetch, shovel.reconnect_delay_s) == (ShovelAckMode.ON_CONFIRM, 1000, 5)
    assert (shovel.delete_after, shovel.adds_headers) == ("never", False)
    assert [uri.host for uri in shovel.dest_uris] == ["a", "b"]


def test_newer_names_have_precedence_over_older_ones() -> None:
    shovel = shovel_of(record(prefetch_count=1, src_prefetch_count=2, delete_after=3))
    assert (shovel.prefetch, shovel.delete_after) == (2, 3)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"src_uri": None}, 'Key "src-uri" not found in s'),
        ({"src_queue": None}, "Must specify 'src-exchange' or 'src-queue'"),
        ({"src_exchange": "x"}, "Cannot specify 'src-exchange' and 'src-queue'"),
        ({"dest_exchange": "x", "dest_queue": "q"}, "Cannot specify 'dest-exchange' and 'dest-queue'"),
        ({"ack_mode": "no-ack", "delete_after": 1}, "Cannot specify 'no-ack' and numerical 'delete-after'"),
        ({"reconnect_delay": "5"}, 'reconnect-delay should be a number, actually was <<"5">>'),
        ({"src_queue": 5}, "src-queue should be binary, actually was 5"),
        ({"add_forward_headers": 1}, "add-forward-headers should be boolean, actually was 1"),
        ({"src_uri": 5}, "src-uri should be list, actually was 5"),
        ({"src_uri": []}, "src-uri should be list, actually was []"),
        (
            {"src_delete_after": "x"},
            'src-delete-after should be number, "never" or "queue-length", actually was <<"x">>',
        ),
        ({"bogus": 1}, 'Unrecognised terms [{<<"bogus">>,1}] in s'),
        (
            {"ack_mode": "x"},
            'ack-mode should be one of [<<"no-ack">>,<<"on-publish">>,<<"on-confirm">>], actually was <<"x">>',
        ),
        ({"src_uri": "http://u:p@h"}, "\"http://h\" not a valid URI: unexpected scheme 'http', expected amqp or amqps"),
        ({"src_prefetch_count": -1}, "src-prefetch-count should be a non-negative integer, actually was -1"),
        ({"publish_properties": {"colour": 1}}, "publish-properties has the unknown property 'colour'"),
        ({"publish_properties": {"priority": "x"}}, 'priority should be a number, actually was <<"x">>'),
    ],
)
def test_an_invalid_parameter_is_refused_with_its_reason(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        shovel_of(record(**changes))
    assert str(refusal.value).startswith("Validation failed\n\n")
    assert fault in str(refusal.value)


def test_all_errors_are_reported_together() -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        shovel_of(record(src_queue=1, dest_queue=2))
    assert len(str(refusal.value).strip().splitlines()) == 4


def test_a_parameter_that_is_no_object() -> None:
    with pytest.raises(PreconditionFailed, match="s not a list 5"):
        shovel_of(ParameterRecord("/", "shovel", "s", 5))


def test_the_parts_of_a_uri() -> None:
    uri = parse_uri("amqps://u%40x:p%2F@h:1/a%2Fb?heartbeat=3&verify=verify_none", "amqps")
    assert (uri.username, uri.password, uri.host, uri.port, uri.vhost) == ("u@x", "p/", "h", 1, "a/b")
    assert (uri.number("heartbeat", 0), uri.has_tls, uri.shown) == (3, True, "amqps://h:1/a%2Fb")


@pytest.mark.parametrize(
    ("text", "host", "vhost"),
    [("amqp://", "", None), ("amqp:///v", "", "v"), ("amqp://h/", "h", ""), ("amqp://h", "h", None)],
)
def test_a_uri_without_some_parts(text: str, host: str, vhost: str | None) -> None:
    uri = parse_uri(text, "amqp")
    assert (uri.host, uri.vhost, uri.is_local) == (host, vhost, not host)


@pytest.mark.parametrize(
    "text",
    [
        "amqp://h/a/b",
        "amqp://h:x",
        "amqp://:1",
        "amqp://h?x=1",
        "amqp://h?heartbeat=x",
        "amqp://h?heartbeat",
        "amqp://h#f",
    ],
)
def test_an_invalid_uri_is_refused(text: str) -> None:
    with pytest.raises(InvalidUri):
        parse_uri(text, "amqp")


@pytest.mark.parametrize(("text", "shown"), [("amqp://u:p@h/v?k=s", "amqp://h/v"), ("u:p@h", "(no URI)")])
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
