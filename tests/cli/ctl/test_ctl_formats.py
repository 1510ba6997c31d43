"""Output formats, and the effects of --quiet and --silent."""

import json

import pytest

from gateway.cli.ctl.erlang import cell
from gateway.cli.ctl.formatters import FORMATTERS
from gateway.cli.ctl.values import Json, JsonObject
from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

QUEUES: list[JsonObject] = [
    {"name": "one-meg", "durable": True, "arguments": {}, "policy": "my-pol"},
    {
        "name": "two",
        "durable": False,
        "arguments": {"x-dead-letter-exchange": "a b", "x-max-length": 5},
        "policy": None,
    },
]


@pytest.fixture
def queues(api: FakeApi) -> None:
    api.answer("GET queues/%2F", QUEUES)


COLUMNS = ("name", "durable", "arguments", "policy")

PRETTY = """\
┌─────────┬─────────┬─────────────────────────────────────────────────────┬────────┐
│ name    │ durable │ arguments                                           │ policy │
├─────────┼─────────┼─────────────────────────────────────────────────────┼────────┤
│ one-meg │ true    │                                                     │ my-pol │
├─────────┼─────────┼─────────────────────────────────────────────────────┼────────┤
│ two     │ false   │ {"x-dead-letter-exchange","a b"},{"x-max-length",5} │        │
└─────────┴─────────┴─────────────────────────────────────────────────────┴────────┘
"""

PLAIN = """\
one-meg\ttrue\t[]\tmy-pol
two\tfalse\t[{"x-dead-letter-exchange","a b"},{"x-max-length",5}]\t
"""
HEADER = "name\tdurable\targuments\tpolicy\n"
BANNER = "Timeout: 60.0 seconds ...\nListing queues for vhost / ...\n"

CSV = """\
"name","durable","arguments","policy"
"one-meg","true","[]","my-pol"
"two","false","[{""x-dead-letter-exchange"",""a b""},{""x-max-length"",5}]",""
"""

PRINTED = [
    pytest.param([], BANNER + HEADER + PLAIN, id="a table with tabs"),
    pytest.param(["--quiet"], HEADER + PLAIN, id="quiet: only the table"),
    pytest.param(["--silent"], PLAIN, id="silent: no header"),
    pytest.param(["-q", "--no-table-headers"], PLAIN, id="no headers"),
    pytest.param(["--formatter=pretty_table", "--silent"], PRETTY, id="R73: boxes"),
    pytest.param(["--formatter=pretty_table"], BANNER + PRETTY, id="boxes with a banner"),
    pytest.param(["--formatter=csv"], CSV, id="csv has no banner"),
    pytest.param(["--formatter=csv", "-s"], CSV, id="csv keeps its header"),
    pytest.param(["--formatter=csv", "--no-table-headers"], CSV.partition("\n")[2], id="csv without header"),
]


@pytest.mark.parametrize(("options", "printed"), PRINTED)
@pytest.mark.usefixtures("queues")
def test_queues_are_printed(ctl: Ctl, options: list[str], printed: str) -> None:
    result = ctl("list_queues", *COLUMNS, *options)
    assert (result.code, result.err) == (0, "")
    assert result.out == printed


@pytest.mark.usefixtures("queues")
def test_json_is_a_list_of_objects_with_the_columns_in_order(ctl: Ctl) -> None:
    printed = ctl("list_queues", *COLUMNS, "--formatter=json").out
    assert json.loads(printed) == QUEUES
    assert printed.splitlines()[1].startswith('{"name":"one-meg","durable":true,"arguments":{}')


EMPTY = [("table", ""), ("pretty_table", ""), ("csv", ""), ("json", "[\n]\n")]


@pytest.mark.parametrize(("formatter", "printed"), EMPTY)
def test_no_rows_print_no_header(ctl: Ctl, api: FakeApi, formatter: str, printed: str) -> None:
    api.answer("GET queues/%2F", [])
    assert ctl("list_queues", "-q", f"--formatter={formatter}").out == printed


def test_every_format_has_a_formatter() -> None:
    assert set(FORMATTERS) == {"table", "pretty_table", "json", "csv"}


CELLS: list[tuple[Json, str]] = [
    (None, ""),
    (True, "true"),
    (5, "5"),
    (1.5, "1.5"),
    ("plain", "plain"),
    ("tab\tand\nline", "tab\\tand\\nline"),
    ("\x1b[31mred", "\\e[31mred"),
    (["administrator", "monitoring"], "[administrator, monitoring]"),
    ([], "[]"),
    ({}, "[]"),
    ({"k": 'a "b"'}, '[{"k","a \\"b\\""}]'),
    ({"k": {"on": True}, "l": [1, "a", None]}, '[{"k",[{"on",true}]},{"l",[1,"a",undefined]}]'),
]


@pytest.mark.parametrize(("value", "text"), CELLS, ids=[text or "null" for _, text in CELLS])
def test_a_cell_is_written_as_rabbitmqctl_writes_it(value: Json, text: str) -> None:
    assert cell(value) == text


def test_boxes_are_aligned_with_wide_characters(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET queues/%2F", [{"name": "注文"}, {"name": "abcd"}])
    lines = ctl("list_queues", "name", "-s", "--formatter=pretty_table").out.splitlines()
    assert lines[3:6] == ["│ 注文 │", "├──────┤", "│ abcd │"]


def test_numeric_names_are_not_reformatted(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET queues/%2F", [{"name": "007"}, {"name": "1e5"}])
    printed = ctl("list_queues", "name", "-s", "--formatter=pretty_table").out
    assert "│ 007  │" in printed
    assert "│ 1e5  │" in printed


def test_a_verb_without_rows_prints_its_outcome_as_json(ctl: Ctl, api: FakeApi) -> None:
    api.answer("PUT vhosts/v2", status=201)
    assert json.loads(ctl("add_vhost", "v2", "--formatter=json").out) == {"result": "ok"}
    api.answer("GET whoami", {"name": "guest"})
    assert json.loads(ctl("ping", "--formatter=json").out) == {"result": "ok", "message": "Ping succeeded"}


def test_silent_prints_no_outcome(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET whoami", {"name": "guest"})
    assert ctl("ping", "-q").out == "Ping succeeded\n"
    assert ctl("ping", "-s").out == ""
