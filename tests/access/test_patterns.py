"""Patterns match like RabbitMQ's, in linear time; unsupported syntax is refused with its name."""

import re
import time

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.patterns import LONGEST_PATTERN, compile_pattern, compile_pattern_caseless

NAMES = [
    "",
    "a",
    "amq.gen-1",
    "amq",
    "amqx",
    "shop",
    "shop.orders",
    "shop.tmp",
    "x.shop.orders",
    "tmp",
    "a|b",
    "sho",
    "SHOP",
]

#: Patterns whose results are compared with those of a backtracking engine like RabbitMQ's.
PATTERNS = [
    ".*", "^.*", "^", "$", "^$", "shop", "^shop", "^shop$", "shop$", "^shop.*", "shop.*", r"^amq\.", r"\.", "^amq.",
    "a|b", "^(a|b)", "^[a-s]+$", "^sho?p?$", "^sho{1}p", r"\d", "[[:alpha:]]", r"^\w+\.\w+$", "(?i)SHOP",
    # lookaround at the ends
    r"^(?!amq\.).*", r"^(?!amq\.)", r"^(?!amq\.|tmp)[a-z]", r"^(?=shop)(?!.*tmp).*$", r"^(?!$)", r"(?i)^(?!shop)",
    r"^(?!amq\.)(shop|tmp)", r"^shop.*(?<!\.tmp)$", r"(?<!p)$", r".*(?<=orders)$", r"^(?!shop).*(?<!-1)$",
    r"\A(?!a[)(]).",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_like_a_backtracking_engine(pattern: str) -> None:
    compiled, expected = compile_pattern(pattern), re.compile(pattern.replace("[[:alpha:]]", "[A-Za-z]"))
    assert [name for name in NAMES if compiled.matches(name)] == [name for name in NAMES if expected.search(name)]


REFUSED = [
    pytest.param(r"(a)\1", r"a backreference '\1'", id="backreference"),
    pytest.param(r"a(?=b)", "lookahead '(?='", id="lookahead in the middle"),
    pytest.param(r"a(?!b)c", "lookahead '(?!'", id="negative lookahead in the middle"),
    pytest.param(r"^(?!a)|b", "lookahead '(?!'", id="lookahead in an alternative"),
    pytest.param(r"(?<=a)b", "lookbehind '(?<='", id="lookbehind"),
    pytest.param(r"(?<!a)b", "lookbehind '(?<!'", id="negative lookbehind"),
    pytest.param(r"^(?!(?!a))", "lookahead '(?!'", id="lookahead inside another"),
    pytest.param(r"(?>a+)b", "an atomic group '(?>'", id="atomic group"),
    pytest.param(r"a++", "the repeat '++'", id="possessive repeat"),
    pytest.param(r"(?P<a>b)(?P=a)", "a backreference or recursion '(?P'", id="named backreference"),
    pytest.param(r"a\Z", r"the escape sequence '\Z'", id="an escape of other engines"),
    pytest.param("(", "missing )", id="an open group"),
    pytest.param("a{2000}", "invalid repetition size", id="a long repeat"),
    pytest.param(r"(\pL\pN|\pN|\pL){500}", "too large", id="a pattern that takes too much memory"),
    pytest.param("a" * (LONGEST_PATTERN + 1), f"{LONGEST_PATTERN} are allowed", id="a long pattern"),
    pytest.param("\ud800", "not valid Unicode", id="a lone surrogate"),
]


@pytest.mark.parametrize(("pattern", "reason"), REFUSED)
def test_syntax_that_cannot_be_matched_in_linear_time_is_refused_with_its_name(pattern: str, reason: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        compile_pattern(pattern)
    assert str(refusal.value).startswith("invalid regular expression ")
    assert reason in str(refusal.value)


EXPONENTIAL = [r"^(a|aa)+$", r"^(a+)+$", r"^(a*)*b", r"(a|b)*a(a|b){200}c", r"^(?!(a|aa)+$)", r"(.*.*.*.*)x$"]


#: A generous limit for a search in linear time, garbage collection included. An exponential search takes minutes.
LINEAR_S = 1.0


@pytest.mark.parametrize("pattern", EXPONENTIAL)
def test_no_pattern_takes_long_to_match(pattern: str) -> None:
    compiled, name = compile_pattern(pattern), "a" * 254 + "!"
    began_s = time.thread_time()
    compiled.matches(name)
    assert time.thread_time() - began_s < LINEAR_S


def test_the_empty_pattern_matches_the_empty_name_only() -> None:
    assert [name for name in NAMES if compile_pattern("").matches(name)] == [""]


def test_a_case_insensitive_pattern_matches_either_case() -> None:
    pattern = compile_pattern_caseless("^shop")
    assert [name for name in NAMES if pattern.matches(name)] == ["shop", "shop.orders", "shop.tmp", "SHOP"]


def test_a_name_with_a_lone_surrogate_is_matched_without_an_error() -> None:
    assert compile_pattern("^a.+z$").matches("a\ud800z")
