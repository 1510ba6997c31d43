"""HTTP resources, verbs and panels of plugins: wrong ones are refused, the others appear and disappear live."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.api import (
    ConfigurationError,
    CtlVerb,
    HttpReply,
    HttpResource,
    Operation,
    PanelColumn,
    PreconditionFailed,
    RequiredPermission,
    UiPanel,
    VerbArgument,
)
from gateway.plugins.services.ctl_verb import problem_of_verb
from gateway.plugins.services.http_resource import problem_of_resource
from gateway.plugins.services.ui_panel import problem_of_panel
from gateway.testing import check_ctl_verb, check_http_resource, check_ui_panel, sample_request
from tests.plugins.live import LiveBroker, do


def answer(request: object) -> object:
    return [{"n": 1}]


RESOURCE = HttpResource("orders", answer)
ONE = HttpResource("orders/{id}", answer)
READ = Operation.READ

WRONG_RESOURCES: list[tuple[Mapping[str, Any], str]] = [
    ({"path": ""}, "the segment '' is neither letters"),
    ({"path": "/a"}, "the segment '' is neither letters"),
    ({"path": "a b"}, "the segment 'a b' is neither letters"),
    ({"path": "a/b/c/d/e/f"}, "has 6 segments; 5 are the most"),
    ({"path": "{id}/{id}"}, "has a variable twice"),
    ({"method": "PATCH"}, "has a method that is not one of GET, PUT, POST, DELETE"),
    ({"tag": "none"}, "requires a tag that is not one of management"),
    ({"answer": None}, "has no function to answer"),
    ({"largest_body": 2**30}, "accepts a body of 1073741824 bytes, not 0 to 16777216"),
    ({"time_limit_s": 0}, "has a time limit of 0 s"),
    ({"permission": RequiredPermission(READ, "queue", "{id}")}, "requires a permission on {id}, which is no variable"),
]


@pytest.mark.parametrize(("fields", "problem"), WRONG_RESOURCES)
def test_a_wrong_resource_is_named(fields: Mapping[str, Any], problem: str) -> None:
    resource = HttpResource(**({"path": "a", "answer": answer} | dict(fields)))
    assert problem in str(problem_of_resource(resource))


WRONG_VERBS: list[tuple[Mapping[str, Any], str]] = [
    ({"name": "List all"}, "a name is lower-case letters"),
    ({"path": "nothing"}, "calls GET 'nothing', which is no resource of the plugin"),
    ({"method": "PUT"}, "calls PUT 'orders', which is no resource"),
    ({"columns": ["a b"]}, "has the column 'a b'"),
    ({"path": "orders/{id}"}, "has no required argument 'id' for the variable of its path"),
    ({"arguments": [VerbArgument("vhost", is_option=True)]}, "besides another of this name"),
    ({"arguments": [VerbArgument("a"), VerbArgument("a")]}, "besides another of this name"),
    ({"arguments": [VerbArgument("a", is_required=False), VerbArgument("b")]}, "after one that may be missing"),
    ({"arguments": [VerbArgument("a", type="date")]}, "is not one of text, integer, number, boolean"),  # type: ignore[arg-type]
    ({"arguments": ["a"]}, "whose name is not one"),
]


@pytest.mark.parametrize(("fields", "problem"), WRONG_VERBS)
def test_a_wrong_verb_is_named(fields: Mapping[str, Any], problem: str) -> None:
    verb = CtlVerb(**({"name": "list", "path": "orders"} | dict(fields)))
    assert problem in str(problem_of_verb(verb, [RESOURCE, ONE]))


WRONG_PANELS: list[tuple[Mapping[str, Any], str]] = [
    ({"title": ""}, "a panel needs a title"),
    ({"path": "nothing"}, "shows 'nothing', which is no GET resource of the plugin"),
    ({"path": "orders/{id}"}, "shows a resource with variables"),
    ({"kind": "chart"}, "the kind 'chart', which is not one of table, numbers, text"),
    ({"page": "home"}, "for the page 'home', which is not one of overview"),
    ({"kind": "text", "columns": [PanelColumn("a")]}, "has columns, but is no table"),
    ({"columns": ["a"]}, "has a column that is no PanelColumn"),
    ({"refresh_s": 0.1}, "refreshes after 0.1 s, not 0, or 1 to 3600"),
]


@pytest.mark.parametrize(("fields", "problem"), WRONG_PANELS)
def test_a_wrong_panel_is_named(fields: Mapping[str, Any], problem: str) -> None:
    panel = UiPanel(**({"title": "Orders", "path": "orders"} | dict(fields)))
    assert problem in str(problem_of_panel(panel, [RESOURCE, ONE]))


# Live

SERVICES = """
from gateway.api import CtlVerb, HttpResource, UiPanel, hookimpl

@hookimpl
def gateway_http_resources(vhost, settings):
    return [HttpResource("version", lambda request: {version})]

@hookimpl
def gateway_ctl_verbs():
    return [CtlVerb("version", "version")]

@hookimpl
def gateway_ui_panels():
    return [UiPanel("Version", "version", "text")]
"""


def versions(broker: LiveBroker, vhost: str = "/") -> list[object]:
    """Return what the resources of a virtual host answer."""
    services = broker.access.view_in_use(vhost).services
    assert len(services.resources) == len(services.verbs) == len(services.panels)
    return [offered.service.answer(sample_request()) for offered in services.resources]


def test_services_follow_their_plugin_in_one_virtual_host(tmp_path: Path) -> None:
    broker = LiveBroker(tmp_path)
    broker.write("mine", SERVICES.replace("{version}", "1"))
    do(broker.live.enabling("/", "mine"))
    assert (versions(broker), versions(broker, "other")) == ([1], [])
    broker.write("mine", SERVICES.replace("{version}", "2"))
    do(broker.live.reloading("/", "mine"))
    assert versions(broker) == [2]
    do(broker.live.rolling_back("/", "mine"))
    assert versions(broker) == [1]
    assert versions(broker.restarted()) == [2]
    do(broker.live.disabling("/", "mine"))
    assert versions(broker) == []


REFUSED = [
    ("return [3]", "gateway_http_resources: 3 is not a HttpResource"),
    ("return [HttpResource('a b', print)]", "gateway_http_resources: the resource GET 'a b': the segment 'a b'"),
    ("return [HttpResource(None, print)]", "gateway_http_resources: HttpResource: AttributeError"),
    ("return [HttpResource('a', print)] * 2", "the resource GET 'a' is offered twice"),
    ("return 1 / 0", "mine.py:4) for virtual host '/': ZeroDivisionError: division by zero"),
]


@pytest.mark.parametrize(("line", "reason"), REFUSED)
def test_a_plugin_with_wrong_services_is_refused(line: str, reason: str, tmp_path: Path) -> None:
    broker = LiveBroker(tmp_path)
    source = f"from gateway.api import HttpResource, hookimpl\n@hookimpl\ndef gateway_http_resources():\n    {line}\n"
    broker.write("mine", source)
    with pytest.raises(ConfigurationError) as refused:
        do(broker.live.enabling("/", "mine"))
    assert reason in str(refused.value)
    assert str(refused.value).startswith("plugin 'mine' (")
    assert versions(broker) == []


def test_verbs_and_panels_without_a_resource_are_refused(tmp_path: Path) -> None:
    for hook, offer, reason in (
        ("ctl_verbs", "CtlVerb('a', 'b')", "the verb 'a' calls GET 'b', which is no resource of the plugin"),
        ("ui_panels", "UiPanel('A', 'b')", "the panel 'A' shows 'b', which is no GET resource of the plugin"),
    ):
        broker = LiveBroker(tmp_path)
        broker.write("mine", f"from gateway.api import *\n@hookimpl\ndef gateway_{hook}():\n    return [{offer}]\n")
        with pytest.raises(ConfigurationError, match=f"gateway_{hook}: {reason}"):
            do(broker.live.enabling("/", "mine"))


def test_a_plugin_that_fails_at_the_start_offers_nothing(tmp_path: Path) -> None:
    broker = LiveBroker(tmp_path)
    broker.write("mine", SERVICES.replace("{version}", "1"))
    do(broker.live.enabling("/", "mine"))
    broker.write("mine", SERVICES.replace('"Version", "version"', '"Version", "absent"').replace("{version}", "1"))
    started = broker.restarted()
    assert "gateway_ui_panels" in started.access.view_in_use("/").inert["mine"]
    assert versions(started) == []


# The checks of gateway.testing


def test_the_checks_name_what_is_wrong() -> None:
    def strict(request: Any) -> object:
        if request.query.get("least", "0") != "0":
            raise PreconditionFailed("no")
        return HttpReply(99) if request.body else int(request.names["id"])

    with pytest.raises(AssertionError, match=r"The resource raised ValueError.* for the GET with names {'id': ''}"):
        check_http_resource(HttpResource("a/{id}", strict))
    with pytest.raises(AssertionError, match="The resource refused the GET"):
        check_http_resource(HttpResource("a/{id}", strict), [sample_request(query={"least": "1"})])
    with pytest.raises(AssertionError, match="cannot be sent: BadAnswer"):
        check_http_resource(HttpResource("a", lambda request: HttpReply(99)))
    with pytest.raises(AssertionError, match="with this resource is refused: the resource GET 'a b'"):
        check_http_resource(HttpResource("a b", strict))
    with pytest.raises(AssertionError, match="with this verb is refused"):
        check_ctl_verb(CtlVerb("a", "absent"), [RESOURCE])
    with pytest.raises(AssertionError, match=r"'Orders' shows numbers; its resource returned \[{'n': 1}\]"):
        check_ui_panel(UiPanel("Orders", "orders", "numbers"), [RESOURCE])
    with pytest.raises(AssertionError, match="shows table"):
        check_ui_panel(UiPanel("Orders", "orders", columns=[PanelColumn("absent")]), [RESOURCE])


def test_the_checks_accept_what_is_right() -> None:
    check_http_resource(RESOURCE, [sample_request()])
    check_http_resource(ONE)
    check_ui_panel(UiPanel("Orders", "orders", columns=[PanelColumn("n")]), [RESOURCE])
    verb = CtlVerb("show", "orders/{id}", arguments=[VerbArgument("id")])
    check_ctl_verb(verb, [RESOURCE, ONE])
    assert verb.method == "GET"
