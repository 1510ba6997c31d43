"""Properties of selectors for any input: they agree with the definition, or are refused as selectors."""

import operator
import re
from collections.abc import Callable, Mapping
from time import process_time
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.messages.message import Properties, Value
from gateway.selectors import Selector, SelectorError
from gateway.selectors.like import like_pattern

# ---- The definition: trees of tuples, their text, their value -------------------------------------------------------

Tree: TypeAlias = tuple[object, ...]

NAMES: Final = ("a", "b", "missing")
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        name: st.none() | st.booleans() | st.integers(-4, 4) | st.sampled_from([0.5, -2.0, "", "x", "xy", "1", b"b"])
        for name in NAMES[:2]
    },
)  # fmt: skip

COMPARED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

properties = st.sampled_from(NAMES).map(lambda name: ("name", name))
texts = st.text("xy'%_", max_size=3)
numbers = st.recursive(
    properties | (st.integers(0, 4) | st.sampled_from([0.5, 2.0])).map(lambda number: ("number", number)),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "/"]), inner, inner) | st.tuples(st.just("minus"), inner),
    max_leaves=4,
)
plain = (
    st.tuples(st.sampled_from(sorted(COMPARED)), numbers, numbers)
    | st.tuples(st.sampled_from(["=", "<>"]), properties, texts.map(lambda text: ("text", text)))
    | st.tuples(st.sampled_from(["between", "not between"]), numbers, numbers, numbers)
    | st.tuples(st.sampled_from(["in", "not in"]), properties, st.lists(texts, min_size=1, max_size=3).map(tuple))
    | st.tuples(st.sampled_from(["like", "not like"]), properties, texts)
    | st.tuples(st.sampled_from(["is null", "is not null"]), properties)
    | properties
    | st.booleans().map(lambda truth: ("truth", truth))
)
conditions = st.recursive(
    plain,
    lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner),
    max_leaves=6,
)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def written(tree: Tree) -> str:
    """Return the tree as text, with all its parentheses."""
    match tree:
        case ("name", name):
            return str(name)
        case ("number" | "truth", value):
            return str(value)
        case ("text", str(text)):
            return quoted(text)
        case ("minus", tuple(inner)):
            return f"(-{written(inner)})"
        case ("not", tuple(inner)):
            return f"(NOT {written(inner)})"
        case ("between" | "not between" as name, tuple(inner), tuple(low), tuple(high)):
            return f"({written(inner)} {name} {written(low)} AND {written(high)})"
        case ("in" | "not in" as name, tuple(inner), tuple(some)):
            return f"{written(inner)} {name} ({', '.join(quoted(str(text)) for text in some)})"
        case ("like" | "not like" as name, tuple(inner), str(pattern)):
            return f"{written(inner)} {name} {quoted(pattern)}"
        case ("is null" | "is not null" as name, tuple(inner)):
            return f"{written(inner)} {name}"
        case (str(sign), tuple(left), tuple(right)):
            return f"({written(left)} {sign} {written(right)})"
    raise AssertionError(tree)


def negated(value: object) -> bool | None:
    return not value if isinstance(value, bool) else None


def is_number(value: object) -> bool:
    return type(value) in (int, float)


def computed(sign: str, left: object, right: object) -> int | float | None:
    if not (
        isinstance(left, (int, float)) and isinstance(right, (int, float)) and is_number(left) and is_number(right)
    ):
        return None
    if sign == "/":
        if right == 0:
            return None
        return int(left / right) if isinstance(left, int) and isinstance(right, int) else left / right
    return {"+": left + right, "-": left - right, "*": left * right}[sign]


def compared(sign: str, left: object, right: object) -> bool | None:
    if left is None or right is None:
        return None
    if is_number(left) and is_number(right):
        return COMPARED[sign](left, right)
    if type(left) is type(right) and type(left) in (str, bool) and sign in ("=", "<>"):
        return COMPARED[sign](left, right)
    return False


def both(left: object, right: object) -> bool | None:
    if left is False or right is False:
        return False
    return True if left is True and right is True else None


def is_like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(is_like(text[used:], pattern[1:]) for used in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and is_like(text[1:], pattern[1:])


def value_of(tree: Tree, headers: Mapping[str, Value]) -> object:
    """Return the value as the specification defines it."""
    match tree:
        case ("name", str(name)):
            return headers.get(name)
        case ("number" | "truth" | "text", value):
            return value
        case ("minus", tuple(inner)):
            return computed("-", 0, value_of(inner, headers))
        case ("not", tuple(inner)):
            return negated(value_of(inner, headers))
        case ("and", tuple(left), tuple(right)):
            return both(value_of(left, headers), value_of(right, headers))
        case ("or", tuple(left), tuple(right)):
            return negated(both(negated(value_of(left, headers)), negated(value_of(right, headers))))
        case ("between", tuple(inner), tuple(low), tuple(high)):
            return value_of(("and", (">=", inner, low), ("<=", inner, high)), headers)
        case ("not between", tuple(inner), tuple(low), tuple(high)):
            return value_of(("or", ("<", inner, low), (">", inner, high)), headers)
        case ("in", tuple(inner), tuple(some)):
            found = value_of(inner, headers)
            return None if found is None else found in some
        case ("like", tuple(inner), str(pattern)):
            found = value_of(inner, headers)
            return None if found is None else isinstance(found, str) and is_like(found, pattern)
        case ("is null", tuple(inner)):
            return value_of(inner, headers) is None
        case ("not in" | "not like" | "is not null" as name, *rest):
            return negated(value_of((name.replace("not ", ""), *rest), headers))
        case ("+" | "-" | "*" | "/" as sign, tuple(left), tuple(right)):
            return computed(sign, value_of(left, headers), value_of(right, headers))
        case (str(sign), tuple(left), tuple(right)):
            return compared(sign, value_of(left, headers), value_of(right, headers))
    raise AssertionError(tree)


@given(tree=conditions, headers=HEADERS)
def test_a_selector_agrees_with_the_definition(tree: Tree, headers: dict[str, Value]) -> None:
    text, message = written(tree), Properties(headers=headers)
    expected = value_of(tree, headers)
    assert Selector.parse(text).matches(message) is (expected is True)
    assert Selector.parse(f"NOT ({text})").matches(message) is (expected is False)


@given(pattern=st.text("ab%_!", max_size=8), text=st.text("ab!\n", max_size=10))
def test_like_agrees_with_the_definition(pattern: str, text: str) -> None:
    assert like_pattern(pattern, None)(text) is is_like(text, pattern)


@given(pieces=st.lists(st.sampled_from(["%", "_", "!%", "!_", "!!", "a"])), text=st.text("a%_!", max_size=8))
def test_escaped_characters_are_literal(pieces: list[str], text: str) -> None:
    regex = "".join({"%": ".*", "_": "."}.get(piece) or re.escape(piece[-1]) for piece in pieces)
    assert like_pattern("".join(pieces), "!")(text) is bool(re.fullmatch(regex, text, re.DOTALL))


# ---- Arbitrary input
# ------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["a", "b", "é", "AND", "or", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "hyphenated_props:",
     "'x'", "''", "'%_'", '"a"', "1", "2.", "1e400", "0x", "07", "=", "<>", "<", "+", "-", "*", "/", "(", ")", ",", "'",
     "!", ".", "\0"]
)  # fmt: skip
ANY_TEXT = st.text() | st.lists(WORDS).map(" ".join) | st.lists(WORDS).map("".join)
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals() | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=3,
)


def tried(parse: Callable[[], Selector]) -> Selector | SelectorError:
    try:
        return parse()
    except SelectorError as error:
        return error


@given(text=ANY_TEXT, headers=st.dictionaries(st.sampled_from(["a", "b"]), ANY_VALUE), converts_text=st.booleans())
def test_arbitrary_text_raises_only_selector_errors(text: str, headers: dict[str, Value], converts_text: bool) -> None:
    parsed = tried(lambda: Selector.parse(text, converts_text=converts_text))
    if isinstance(parsed, SelectorError):
        assert 0 <= parsed.position <= len(text)
    else:
        assert isinstance(parsed.matches(Properties(headers=headers)), bool)


PARTS = st.sampled_from(
    ["{", "}", "[", "]", ",", "'and'", "ident", "like", '<<"a">>', '<<"', "1", "-2.5", "'", "true", ".", "\\"]
)
ANY_TERM = st.text() | st.lists(PARTS).map("".join) | st.lists(PARTS).map(lambda parts: "{" + ",".join(parts) + "}")


@given(term=ANY_TERM, headers=st.dictionaries(st.just("a"), ANY_VALUE))
def test_an_arbitrary_term_raises_only_selector_errors(term: str, headers: dict[str, Value]) -> None:
    parsed = tried(lambda: Selector.parse_term(term))
    if isinstance(parsed, SelectorError):
        assert 0 <= parsed.position <= len(term)
    else:
        assert isinstance(parsed.matches(Properties(headers=headers)), bool)


@given(tree=conditions, headers=st.dictionaries(st.sampled_from(NAMES), ANY_VALUE))
def test_every_message_can_be_evaluated(tree: Tree, headers: dict[str, Value]) -> None:
    for converts_text in (False, True):
        selector = Selector.parse(written(tree), converts_text=converts_text)
        assert isinstance(selector.matches(Properties(headers=headers)), bool)


@pytest.mark.parametrize("pattern", ["%a" * 4000 + "b", "%_a" * 4000 + "b", "%" + "_a" * 4000 + "%b", "%" * 8000])
def test_no_pattern_takes_long_for_a_long_text(pattern: str) -> None:
    selector, message = Selector.parse(f"text LIKE '{pattern}'"), Properties(headers={"text": "a" * 100_000})
    start = process_time()
    selector.matches(message)
    assert process_time() - start < 2


def test_no_arithmetic_creates_long_numbers() -> None:
    selector = Selector.parse("*".join(["a"] * 4000) + " > 0")
    start = process_time()
    assert not selector.matches(Properties(headers={"a": 2**62}))
    assert process_time() - start < 1
