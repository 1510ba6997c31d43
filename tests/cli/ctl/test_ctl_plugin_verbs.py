"""Verbs that plugins add: gatewayctl learns them from the broker, and calls their resources."""

from typing import Any

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

CUSTOMERS = "/api/plugins/%2F/acme/resources/customers"


def described(name: str, path: str, method: str = "GET", **fields: Any) -> dict[str, Any]:
    row = {"plugin": "acme", "vhost": "/", "name": name, "path": path, "method": method, "description": f"{name}."}
    return row | {"arguments": [], "columns": [], **fields}


def argument(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": "", "type": "text", "is_option": False, "is_required": True, "values": []} | (
        fields
    )


@pytest.fixture(autouse=True)
def verbs(api: FakeApi) -> None:
    least = argument("least-orders", type="integer", is_option=True, is_required=False)
    level = argument("level", values=["high", "low"])
    api.answer(
        "GET ctl-verbs/%2F",
        [
            described("list", CUSTOMERS, arguments=[least], columns=["name", "orders"]),
            described("show", f"{CUSTOMERS}/{{name}}", arguments=[argument("name")]),
            described("set", f"{CUSTOMERS}/{{name}}", "PUT", arguments=[argument("name"), level, least]),
            described("drop", f"{CUSTOMERS}/{{name}}", "DELETE", arguments=[argument("name")]),
            described("text", "/api/plugins/%2F/acme/resources/text"),
            described("words", "/api/plugins/%2F/acme/resources/words"),
        ],
    )
    api.answer("GET plugins/%2F/acme/resources/customers", [{"orders": 3, "name": "ann"}, {"name": "bob"}])
    api.answer("GET plugins/%2F/acme/resources/customers/a%2Fb", {"name": "a/b", "orders": 3})
    api.answer("PUT plugins/%2F/acme/resources/customers/ann", None, 204)
    api.answer("DELETE plugins/%2F/acme/resources/customers/ann", {"error": "x", "reason": "she has orders"}, 400)
    api.answer("GET plugins/%2F/acme/resources/words", ["a", 1])


def test_rows_are_printed_with_the_columns_of_the_verb(ctl: Ctl) -> None:
    result = ctl("acme", "list")
    assert (result.code, result.out) == (0, "name\torders\nann\t3\nbob\t\n")
    assert ctl("acme", "list", "--formatter", "json").out == (
        '[\n{"name":"ann","orders":3}\n,{"name":"bob","orders":null}\n]\n'
    )
    assert ctl("plugin", "call", "acme", "list", "-s").out == "ann\t3\nbob\t\n"


def test_arguments_go_to_the_path_the_query_and_the_body(api: FakeApi, ctl: Ctl) -> None:
    assert ctl("acme", "show", "a/b").out == "name\tvalue\nname\ta/b\norders\t3\n"
    assert ctl("acme", "list", "--least-orders", "2").code == 0
    assert api.received[-1].target == "/api/plugins/%2F/acme/resources/customers?least-orders=2"
    assert ctl("acme", "set", "ann", "low", "--least-orders", "2").code == 0
    assert api.changes() == [("PUT plugins/%2F/acme/resources/customers/ann", {"level": "low", "least-orders": 2})]


def test_a_text_and_a_list_are_printed_as_they_are(api: FakeApi, ctl: Ctl) -> None:
    api.answers["GET plugins/%2F/acme/resources/text"] = (200, b"a,b\n1,2\n")
    assert ctl("acme", "text").out == "a,b\n1,2\n"
    assert ctl("acme", "words").out == "a\n1\n"


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        (("acme", "nothing"), 64, "plugin 'acme' has no verb 'nothing'; it has list, show, set, drop, text, words"),
        (("acme", "show"), 64, "Missing argument 'NAME'. Usage: gatewayctl acme show [OPTIONS] NAME"),
        (("acme", "list", "--most", "1"), 64, "No such option '--most'"),
        (("acme", "list", "--least-orders", "x"), 64, "'x' is not a valid integer"),
        (("acme", "set", "ann", "middle"), 64, "'middle' is not one of 'high', 'low'"),
        (("acme", "drop", "ann"), 69, "Error: she has orders"),
        (("acme", "list", "-p", "absent"), 65, "Virtual host 'absent' does not exist"),
        (("plugin", "call", "other", "list"), 64, "plugin 'other' adds no verbs in vhost '/'"),
        (("list_queus", "name"), 64, "Command 'list_queus' not found. Did you mean 'list_queues'?"),
    ],
)
def test_an_error_names_what_is_wrong(ctl: Ctl, line: tuple[str, ...], code: int, error: str) -> None:
    result = ctl(*line)
    assert result.code == code
    assert error in result.err
    assert result.err.count("\n") == 1


def test_an_unknown_verb_is_named_also_without_a_broker(ctl: Ctl) -> None:
    result = ctl("--url", "http://127.0.0.1:1", "list_queus")
    assert "Command 'list_queus' not found. Did you mean 'list_queues'?" in result.err


def test_the_verbs_are_listed(ctl: Ctl) -> None:
    assert "acme\tacme set NAME LEVEL [--least-orders VALUE]\tset." in ctl("plugin", "verbs").out
    assert "gatewayctl acme show NAME  show." in ctl("acme").out
    assert "--least-orders INTEGER" in ctl("acme", "list", "--help").out
