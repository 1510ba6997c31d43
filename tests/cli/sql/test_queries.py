"""Queries over streams, archives, traces and the audit record, within the user's permissions."""

import json

import pytest

from gateway.management.pipeline.reading import MAX_CHUNK_BYTES
from gateway.sql.api import SqlFailed
from tests.cli.ctl.running import Ctl
from tests.cli.sql.conftest import KEPT, ORDERS
from tests.cli.sql.recorded_api import RecordedApi, select
from tests.pipeline.stream_broker import StreamBroker

#: The first test waits for archives, whose worker has a low priority.
pytestmark = pytest.mark.timeout(300)


def test_a_stream_is_read_as_a_whole_with_its_sealed_segments(api: RecordedApi) -> None:
    asked = 'select count(*), min("offset"), max("offset"), count(distinct body) from streams.orders'
    assert select(api, asked) == [(ORDERS, 0, ORDERS - 1, ORDERS)]
    assert api.count("read") > 2, "the stream has several segments"


def test_offsets_are_pushed_down(api: RecordedApi) -> None:
    assert select(api, f'select body from streams.orders where "offset" = {ORDERS - 1}') == [
        (b"%d " % (ORDERS - 1) + bytes(100),)
    ]
    [read] = [query for path, query in api.requested if path[-1] == "read"]
    assert (read["from"], read["to"]) == (str(ORDERS - 1), str(ORDERS))


def test_times_are_pushed_down(api: RecordedApi) -> None:
    late = "timestamp > now() + interval 1 hour"
    assert select(api, f"select count(*) from streams.orders where {late}") == [(0,)]
    assert select(api, "select count(*) from streams.orders where timestamp < '2020-01-01'") == [(0,)]
    assert api.count("read") == 0
    assert select(api, f"select count(*) from archive.kept where {late}") == [(0,)]
    assert api.count("part") == 0
    recent = select(api, "select count(*) from streams.orders where timestamp > now() - interval 1 hour")
    assert recent == [(ORDERS,)]


def test_an_archive_has_each_message_once(api: RecordedApi) -> None:
    asked = 'select count(*), count(distinct "offset") from archive.kept'
    assert select(api, asked) == [(KEPT + 1, KEPT + 1)]
    found = select(api, 'select exchange, decode(body) from archive."amq.fanout"')
    assert found == [("amq.fanout", "by the exchange")]


def test_columns_of_an_archive_are_pruned(api: RecordedApi) -> None:
    assert select(api, 'select sum("offset") from archive.kept') == [(sum(range(KEPT + 1)),)]
    few = sum(api.sizes)
    api.sizes.clear()
    assert len(select(api, "select * from archive.kept")) == KEPT + 1
    assert few < sum(api.sizes)


def test_traces_have_the_events_of_messages(api: RecordedApi) -> None:
    found = dict(select(api, "select event, count(*) from traces where queue = 'kept' group by event"))
    assert found == {"route": KEPT + 1, "enqueue": KEPT + 1}


def test_the_audit_record_is_a_table(api: RecordedApi) -> None:
    created = "action = 'user.created' and subject = 'watcher'"
    [(user, after)] = select(api, f"select subject, after->>'$.tags[0]' from audit where {created}")
    assert (user, after) == ("watcher", "monitoring")
    assert select(api, "select count(*) from audit where timestamp > now() + interval 1 hour") == [(0,)]


def test_tables_can_be_joined(api: RecordedApi) -> None:
    asked = "select count(*) from archive.kept a join traces t using (routing_key) where t.event = 'publish'"
    assert select(api, asked) == [(KEPT * KEPT + 1,)]


def test_a_large_stream_comes_in_bounded_answers(api: RecordedApi) -> None:
    assert select(api, "select sum(octet_length(body)) > 0 from streams.orders") == [(True,)]
    assert len(api.sizes) > 3
    assert max(api.sizes) <= MAX_CHUNK_BYTES * 2, "segments have 64 KiB; those at the end are encoded in chunks"


# Permissions


def tables(api: RecordedApi, *tags: str, vhost: str = "/") -> list[str]:
    return [name for name, _ in select(api, "show tables", tags=tags, vhost=vhost)]


def test_the_user_sees_the_tables_that_it_may_read(broker: StreamBroker, api: RecordedApi) -> None:
    streams, archives = ['streams."orders"', 'streams."secret"'], ['archive."amq.fanout"', 'archive."kept"']
    assert tables(api, "administrator") == [*streams, *archives, 'archive."secret"', "traces", "audit"]
    assert tables(RecordedApi(broker.gateway, "reader")) == ['streams."orders"', 'archive."kept"']
    assert tables(RecordedApi(broker.gateway, "stranger")) == []
    assert tables(RecordedApi(broker.gateway, "watcher"), "monitoring") == ["traces"]
    assert tables(api, "administrator", vhost="other") == ["audit"]


@pytest.mark.parametrize("table", ["streams.secret", "archive.secret", "traces", "audit"])
def test_what_the_user_may_not_read_does_not_exist(broker: StreamBroker, table: str) -> None:
    with pytest.raises(SqlFailed, match="does not exist") as refused:
        select(RecordedApi(broker.gateway, "reader"), f"select * from {table}", tags=())
    assert "secret" not in str(refused.value).partition("does not exist")[2]


def test_listings_of_the_catalogue_have_no_other_tables(broker: StreamBroker) -> None:
    reader = RecordedApi(broker.gateway, "reader")
    for source in ("information_schema.tables", "duckdb_views()", "duckdb_tables()", "pg_tables"):
        assert "secret" not in str(select(reader, f"select * from {source}", tags=()))


def test_each_virtual_host_has_its_own_tables(api: RecordedApi) -> None:
    with pytest.raises(SqlFailed, match="does not exist"):
        select(api, "select * from streams.orders", vhost="other")


# The command line


def test_results_are_printed_in_the_formats_of_other_verbs(ctl: Ctl) -> None:
    asked = "select 1 a, 'x' a, 1.5 b, null c, [1, 2] d, {'k': 'v'} e, '\\xff'::blob f, 'nan'::float g, true h"
    result = ctl(asked, "--formatter", "json")
    [row] = json.loads(result.out)
    assert row == {
        "a": 1,
        "a:1": "x",
        "b": 1.5,
        "c": None,
        "d": [1, 2],
        "e": {"k": "v"},
        "f": "\\xff",
        "g": "nan",
        "h": True,
    }
    assert ctl("select 1 a, 'x,y' b", "--formatter", "csv").out == '"a","b"\n"1","x,y"\n'
    assert ctl("select 1 a, 2 b").out == "a\tb\n1\t2\n"
    assert "│ a │" in ctl("select 1 a", "--formatter", "pretty_table").out


def test_many_rows_are_printed(ctl: Ctl) -> None:
    result = ctl('select "offset" from streams.orders order by 1', "-s")
    assert result.out.splitlines() == [str(offset) for offset in range(ORDERS)]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("selec 1", 'syntax error at or near "selec"'),
        ("", "one query is expected"),
        ("select nothing from audit", 'column "nothing" not found'),
        ("select 1; select 2", "one query is expected"),
        ("select * from range(", "syntax error"),
        ("select 1/0::int + 'x'::int", "Could not convert"),
    ],
)
def test_wrong_sql_is_one_line(ctl: Ctl, wrong: str, reason: str) -> None:
    result = ctl(wrong)
    assert (result.code, result.out) == (69, "")
    assert result.err.startswith("Error: ")
    assert reason in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "hostile",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/passwd')",
        "select * from read_blob('/etc/passwd')",
        "select * from read_parquet('/etc/passwd')",
        "select * from parquet_metadata('/etc/passwd')",
        "select * from sniff_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from '/etc/passwd.csv'",
        "select * from glob('/etc/*')",
        "select * from query('copy (select 1) to ''/tmp/x''')",
        "select getenv('HOME')",
        "copy (select 1) to '/tmp/gateway-sql-copy'",
        "explain analyze copy (select 1) to '/tmp/gateway-sql-copy'",
        "attach '/tmp/gateway-sql.db'",
        "export database '/tmp/gateway-sql'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "reset enable_external_access",
        "pragma enable_external_access",
        "create table t as select 1",
        "create secret (type s3)",
        "call pragma_version()",
        "select * from broker",
    ],
)
def test_hostile_sql_is_refused(ctl: Ctl, hostile: str) -> None:
    result = ctl(hostile)
    assert (result.code, result.out) == (69, "")
    assert result.err.count("\n") == 1
    assert "root:" not in result.err


def test_a_query_without_enough_memory_fails_with_one_line(ctl: Ctl) -> None:
    result = ctl("select list(range) from range(100000000)", "--memory-limit", "50MB")
    assert result.code == 69
    assert "Out of Memory" in result.err
    assert result.err.count("\n") == 1
    assert ctl("select 1", "--memory-limit", "much").code == 69


def test_the_error_of_the_broker_is_the_error_of_the_query(broker: StreamBroker, ctl: Ctl) -> None:
    result = ctl("select * from streams.orders", "-p", "missing")
    assert (result.code, result.err) == (69, "Error: no vhost 'missing'\n")
