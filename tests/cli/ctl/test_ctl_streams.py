"""Verbs for streams and super streams."""

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

STREAM = {"type": "stream", "node": "gateway@here", "first_offset": 5, "next_offset": 9, "consumers": 2, "segments": 3}
TRACKED = {"offsets": {"you": 7, "me": 3}, "lags": {"you": 1, "me": 5}, "writers": {}}

MADE = [
    ([], {}),
    (["--partitions", "3"], {"partitions": 3}),
    (["--binding-keys", "amer,emea"], {"binding-keys": "amer,emea"}),
    (["--routing-keys", "amer,emea"], {"binding-keys": "amer,emea"}),
    (["--exchange-type", "direct", "--partitions", "2"], {"exchange-type": "direct", "partitions": 2}),
]


@pytest.mark.parametrize(("options", "body"), MADE)
def test_a_super_stream_is_created(ctl: Ctl, api: FakeApi, options: list[str], body: dict[str, object]) -> None:
    api.answer("PUT stream/super-streams/%2F/invoices", status=201)
    result = ctl("add_super_stream", "invoices", *options)
    assert (result.code, result.out) == (0, "Adding a super stream ...\nSuper stream invoices has been created\n")
    assert api.changes() == [("PUT stream/super-streams/%2F/invoices", {**body, "arguments": {}})]


ARGUMENTS = [
    (["--max-age", "P1DT2H"], {"x-max-age": "93600s"}),
    (["--max-age", "PT10M30S"], {"x-max-age": "630s"}),
    (["--max-age", "P1Y2M3W4D"], {"x-max-age": f"{(365 + 60 + 21 + 4) * 86400}s"}),
    (["--max-age", "7D"], {"x-max-age": "7D"}),
    (["--max-length-bytes", "20gb"], {"x-max-length-bytes": 20_000_000_000}),
    (["--max-length-bytes", "5000"], {"x-max-length-bytes": 5000}),
    (["--stream-max-segment-size-bytes", "500MB"], {"x-stream-max-segment-size-bytes": 500_000_000}),
    (["--leader-locator", "least-leaders"], {"x-queue-leader-locator": "least-leaders"}),
    (["--initial-cluster-size", "1"], {"x-initial-cluster-size": 1}),
]


@pytest.mark.parametrize(("options", "arguments"), ARGUMENTS)
def test_partitions_get_arguments(ctl: Ctl, api: FakeApi, options: list[str], arguments: dict[str, object]) -> None:
    api.answer("PUT stream/super-streams/v1/invoices", status=201)
    ctl("-p", "v1", "add_super_stream", "invoices", *options)
    assert api.changes() == [("PUT stream/super-streams/v1/invoices", {"arguments": arguments})]


def test_a_super_stream_is_deleted(ctl: Ctl, api: FakeApi) -> None:
    api.answer("DELETE stream/super-streams/%2F/invoices", status=204)
    result = ctl("delete_super_stream", "invoices")
    assert (result.code, result.out.splitlines()[-1]) == (0, "Super stream invoices has been deleted")


def test_the_status_of_a_stream_is_printed(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET queues/%2F/s", STREAM)
    assert ctl("stream_status", "s").out == (
        "Status of stream s on node gateway@here ...\n"
        "role\tnode\toffset\tcommitted_offset\tfirst_offset\treaders\tsegments\n"
        "writer\tgateway@here\t8\t8\t5\t2\t3\n"
    )


@pytest.mark.parametrize("verb", [["stream_status", "--tracking", "s"], ["list_stream_tracking", "s"]])
def test_stored_offsets_are_listed(ctl: Ctl, api: FakeApi, verb: list[str]) -> None:
    api.answer("GET stream/%2F/s/tracking", TRACKED)
    assert ctl(*verb, "-q").out == "type\treference\tvalue\tlag\noffset\tme\t3\t5\noffset\tyou\t7\t1\n"


def test_an_offset_is_set_and_deleted(ctl: Ctl, api: FakeApi) -> None:
    api.answer("PUT stream/%2F/s/tracking/me", status=201)
    api.answer("DELETE stream/%2F/s/tracking/me", status=204)
    assert (ctl("set_stream_offset", "s", "me", "5").code, ctl("delete_stream_offset", "s", "me").code) == (0, 0)
    assert api.changes() == [
        ("PUT stream/%2F/s/tracking/me", {"offset": 5}),
        ("DELETE stream/%2F/s/tracking/me", None),
    ]


def test_stream_consumers_are_listed(ctl: Ctl, api: FakeApi) -> None:
    reader = {
        "channel_details": {"connection_name": "here -> there"},
        "queue": {"name": "s"},
        "subscription_id": "c",
        "credits": 3,
        "consumed": 7,
        "offset": 6,
        "offset_lag": 2,
        "properties": {"name": "me"},
    }
    api.answer("GET stream/consumers/%2F", [reader])
    assert ctl("list_stream_consumers", "-s").out == "here -> there\ts\tc\t3\t7\t6\t2\n"
    assert ctl("list_stream_consumers", "stream", "properties", "-s").out == 's\t[{"name","me"}]\n'


def test_listings_of_the_stream_protocol_are_empty(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET stream/publishers/%2F", [])
    api.answer("GET stream/connections", [])
    assert ctl("list_stream_publishers", "-q").code == 0
    assert ctl("list_stream_connections", "-q", "conn_name", "user").code == 0


REFUSED = [
    (["add_super_stream", "x", "--partitions", "0"], 64, "The partition number must be greater than 0"),
    (["add_super_stream", "x", "--partitions", "2", "--routing-keys", "a"], 64, "Specify --partitions or"),
    (["add_super_stream", "x", "--max-age", "nonsense"], 64, "Invalid value for --max-age"),
    (["add_super_stream", "x", "--max-age", "P"], 64, "Invalid value for --max-age"),
    (["add_super_stream", "x", "--max-length-bytes", "huge"], 64, "Invalid value for --max-length-bytes"),
    (["add_super_stream", "x", "-p", "nope"], 65, "Virtual host 'nope' does not exist"),
    (["delete_super_stream", "x"], 69, "super stream 'x' does not exist in vhost '/'"),
    (["stream_status", "x"], 69, "stream 'x' does not exist in vhost '/'"),
    (["stream_status", "q"], 64, "queue 'q' is not a stream"),
    (["list_stream_tracking", "x"], 69, "stream 'x' does not exist in vhost '/'"),
    (["set_stream_offset", "x", "me", "1"], 69, "stream 'x' does not exist in vhost '/'"),
    (["delete_stream_offset", "s", "me"], 69, "consumer 'me' of stream 's' does not exist in vhost '/'"),
    (["set_stream_retention_policy", "s", "x"], 64, "set_stream_retention_policy"),
]


@pytest.mark.parametrize(("arguments", "code", "error"), REFUSED)
def test_an_error_exits_with_its_code(ctl: Ctl, api: FakeApi, arguments: list[str], code: int, error: str) -> None:
    api.answer("GET queues/%2F/q", {"type": "classic"})
    result = ctl(*arguments)
    assert result.code == code, result.err
    assert error in result.err
