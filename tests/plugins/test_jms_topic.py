"""x-jms-topic evaluates each binding's selector, in JMS syntax or compiled by RabbitMQ's JMS client.

Rules: R146.
"""

import pytest

from gateway.api import Arguments, PreconditionFailed
from gateway.testing import StandIn, check_exchange_type, plain_message, stand_in_binding
from gateway_exchanges.jms_topic import JmsTopic

SELECTORS: list[Arguments] = [
    {"x-jms-selector": "animal = 'dog'"},
    {"x-jms-selector": "n > 1 OR animal IS NULL"},
    {"rjms_erlang_selector": "{'=',{'ident',<<\"animal\">>},<<\"dog\">>}."},
]


def test_the_type_fulfils_the_contract() -> None:
    check_exchange_type(JmsTopic, binding_arguments=SELECTORS)


def test_a_message_is_routed_by_selectors_whatever_its_key() -> None:
    exchange = JmsTopic({})
    for number, arguments in enumerate(SELECTORS):
        exchange.bind(stand_in_binding(StandIn(f"q{number}"), "key", arguments))
    reached = [
        [destination.name for destination in exchange.route(plain_message("other", headers))]
        for headers in ({"animal": "dog"}, {"animal": "cat"}, {"animal": "dog", "n": 2}, {})
    ]
    assert reached == [["q0", "q2"], [], ["q0", "q1", "q2"], ["q1"]]


REFUSED: list[tuple[Arguments, str]] = [
    ({}, "exactly one of the arguments x-jms-selector and rjms_erlang_selector"),
    ({"x-jms-selector": "TRUE", "rjms_erlang_selector": "'true'."}, "exactly one of the arguments"),
    ({"x-jms-selector": 1}, "x-jms-selector must be text"),
    ({"x-jms-selector": "a ="}, "cannot parse x-jms-selector: expected a name or a value but found the end"),
    ({"rjms_erlang_selector": "{a"}, "cannot parse rjms_erlang_selector: not an Erlang term at character 3"),
]


@pytest.mark.parametrize(("arguments", "reason"), REFUSED, ids=[row[1][:40] for row in REFUSED])
def test_a_binding_without_one_valid_selector_is_refused(arguments: Arguments, reason: str) -> None:
    exchange = JmsTopic({})
    with pytest.raises(PreconditionFailed, match=reason):
        exchange.bind(stand_in_binding(StandIn("q"), "key", arguments))
    assert exchange.route(plain_message("key")) == []
