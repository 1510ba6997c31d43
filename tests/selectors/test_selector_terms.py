"""Selectors compiled to Erlang terms by RabbitMQ's JMS client: equivalent to their text."""

import pytest

from gateway.kernel.messages.message import Properties
from gateway.selectors import Selector, SelectorError

MESSAGE = Properties(headers={"color": "blue", "weight": 2501, "quoted": 'a"b\\c', "sold": False}, type="car")

TERMS = [
    # term                                                                          matches
    ("{'ident',<<\"sold\">>}.",                                                     False),
    ("{'not',{'ident',<<\"sold\">>}}.",                                             True),
    ("{'not', {ident, <<\"sold\">>}}",                                                True),
    ("{'=',{'ident',<<\"JMSType\">>},<<\"car\">>}.",                                True),
    ("{'=',{'ident',<<\"quoted\">>},<<\"a\\\"b\\\\c\">>}.",                         True),
    ("{'and',{'<>',{'ident',<<\"color\">>},<<\"red\">>},{'>',{'ident',<<\"weight\">>},2500}}.", True),
    ("{'or',{'<',{'ident',<<\"weight\">>},1.0E3},'true'}.",                         True),
    ("{'<=',{'+',{'ident',<<\"weight\">>},-1},{'*',2500,1}}.",                      True),
    ("{'>=',{'-',{'ident',<<\"weight\">>}},{'/',-7,2}}.",                           False),
    ("{'between',{'ident',<<\"weight\">>},2501,2502}.",                             True),
    ("{'between',{'ident',<<\"weight\">>},{'range',1,2}}.",                         False),
    ("{'not_between',{'ident',<<\"weight\">>},1,2}.",                               True),
    ("{'in',{'ident',<<\"color\">>},[<<\"red\">>,<<\"blue\">>]}.",                  True),
    ("{'not_in',{'ident',<<\"color\">>},[<<\"red\">>]}.",                           True),
    ("{'in',{'ident',<<\"color\">>},[]}.",                                          False),
    ("{'like',{'ident',<<\"color\">>},<<\"bl%\">>,'no_escape'}.",                   True),
    ("{'not_like',{'ident',<<\"color\">>},<<\"bl!%\">>,<<\"!\">>}.",                True),
    ("{'is_null',{'ident',<<\"size\">>}}.",                                         True),
    ("{'not_null',{'ident',<<\"size\">>}}.",                                        False),
    ("'false'.",                                                                    False),
]  # fmt: skip


@pytest.mark.parametrize(("term", "matches"), TERMS, ids=[row[0] for row in TERMS])
def test_a_term_matches_like_its_text(term: str, matches: bool) -> None:
    assert Selector.parse_term(term).matches(MESSAGE) is matches


REFUSED = [
    ("", "not an Erlang term at character 1"),
    ("{'and'", "not an Erlang term at character 7"),
    ("{'not','true'}. more", "unexpected text after the term at character 15"),
    ("{'not','true']", "expected } at character 14"),
    ("2501", "expected a condition but found a number at character 1"),
    ("[]", "no expression at character 1"),
    ("'maybe'", "no expression at character 1"),
    ("{'xor','true','true'}", "unknown operation 'xor' with 2 operands at character 1"),
    ("{'in',{'ident',<<\"a\">>},[1]}", "a list whose items are not all texts at character 1"),
    ('{\'like\',{\'ident\',<<"a">>},<<"b">>,<<"">>}', "an escape that is not one character at character 1"),
    ('{\'like\',{\'ident\',<<"a">>},<<"!">>,<<"!">>}', "nothing follows the escape character at character 1"),
    ("{'not'," * 101 + "'true'" + "}" * 101, "nested more than 100 deep at character 702"),
    ("{'not','true'}" + " " * 16_384, "more than 16384 characters, the first excess one at character 16385"),
]


@pytest.mark.parametrize(("term", "reason"), REFUSED, ids=[row[0][:40] for row in REFUSED])
def test_an_invalid_term_is_refused_with_reason_and_position(term: str, reason: str) -> None:
    with pytest.raises(SelectorError) as refused:
        Selector.parse_term(term)
    assert str(refused.value) == reason


def test_a_term_of_a_hundred_levels_is_parsed_and_evaluated() -> None:
    assert Selector.parse_term("{'not'," * 100 + "'true'" + "}" * 100).matches(MESSAGE)
