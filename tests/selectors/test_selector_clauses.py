"""Each sentence of JMS 2.0, 3.8.1.1 on what a selector may hold, and each cell of the tables of 3.8.1.2."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from gateway.kernel.messages.message import Properties, Value
from gateway.selectors import Selector, SelectorError

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
SENT = Properties(
    headers={
        "color": "blue",
        "weight": 2501,
        "price": 1.5,
        "sold": False,
        "new": True,
        "quoted": "it's",
        "phone": "12993",
        "word": "lose",
        "underscored": "_foo",
        "count": "2",
        "big": 2**63 - 1,
        "decimal": Decimal("1.50"),
        "at": NOON,
        "raw": b"\x00",
        "list": [1],
        "void": None,
        "x-death": "twice",
        "order.total": 3,
        "$_a1": 1,
        "größe": 4,
        "andy": 1,
        "Color": "red",
    },
    delivery_mode=2,
    priority=7,
    message_id="ID:1",
    correlation_id="c-1",
    timestamp=NOON,
    type="car",
    reply_to="answers",
    user_id="guest",
)

TRUE, FALSE, UNKNOWN = True, False, None

VALUES = [
    # selector                                                     value
    ("", TRUE, "the empty string: no selector"),
    (" \t\r\n\f", TRUE, "spaces: no selector"),
    ("JMSType = 'car' AND color = 'blue' AND weight > 2500", TRUE, "the example"),
    # Literals
    ("color = 'blue'", TRUE, "text: in single quotes"),
    ("quoted = 'it''s'", TRUE, "text: a quote within is doubled"),
    ("color = 'Blue'", FALSE, "text: the same sequence of characters"),
    ("weight = 2501", TRUE, "exact: decimal"),
    ("weight = 2501L", TRUE, "exact: with Java's suffix"),
    ("weight = 0x9C5", TRUE, "exact: hexadecimal"),
    ("weight = 04705", TRUE, "exact: octal"),
    ("weight > -957 AND weight > +62", TRUE, "exact: signed"),
    ("big = 9223372036854775807", TRUE, "exact: the range of long"),
    ("-9223372036854775808 < 0", TRUE, "exact: the least long"),
    ("price = 15E-1", TRUE, "approximate: scientific notation"),
    ("price = .15e1", TRUE, "approximate: begins with a point"),
    ("price < 7. AND price > -95.7", TRUE, "approximate: with a point"),
    ("price = 1.5d AND weight > 1f", TRUE, "approximate: with Java's suffixes"),
    ("TRUE", TRUE, "truth: TRUE"),
    ("False", FALSE, "truth: FALSE, in any case"),
    # Identifiers
    ("$_a1 = 1", TRUE, "names: letters, _ and $, then digits too"),
    ("größe = 4", TRUE, "names: letters of any language"),
    ("order.total = 3", TRUE, "names: dots, as in RabbitMQ"),
    ("\"x-death\" = 'twice'", TRUE, "names: anything in double quotes, as in SQL-92"),
    ("\"color\" = 'blue'", TRUE, "names: the same in double quotes"),
    ("Color = 'red' AND color = 'blue'", TRUE, "names: case counts"),
    ("andy = 1", TRUE, "names: may begin like an operator"),
    ("missing = 'blue'", UNKNOWN, "names: a missing property is NULL"),
    ("void = 1", UNKNOWN, "names: a property without a value is NULL"),
    ("count > 1", FALSE, "names: text is never converted"),
    ("JMSDeliveryMode = 'PERSISTENT'", TRUE, "fields: JMSDeliveryMode is text"),
    ("JMSPriority = 7", TRUE, "fields: JMSPriority"),
    ("JMSMessageID = 'ID:1'", TRUE, "fields: JMSMessageID"),
    ("JMSTimestamp = 1709208000000", TRUE, "fields: JMSTimestamp, in milliseconds"),
    ("JMSCorrelationID LIKE 'c%'", TRUE, "fields: JMSCorrelationID"),
    ("JMSReplyTo = 'answers'", TRUE, "fields: JMSReplyTo"),
    ("JMSXUserID = 'guest'", TRUE, "properties of JMS: JMSXUserID"),
    ("JMSXAppID IS NULL", TRUE, "properties of JMS: JMSXAppID is not set"),
    ("JMSXDeliveryCount IS NULL", TRUE, "properties of JMS: JMSXDeliveryCount is not known"),
    ("JMSNonsense IS NULL", TRUE, "fields: no others"),
    ("at = 1709208000000", TRUE, "values: a timestamp is its milliseconds"),
    ("decimal = 1.5", TRUE, "values: a decimal is a number"),
    ("raw IS NOT NULL AND list IS NOT NULL", TRUE, "values: bytes and arrays are not NULL"),
    ("raw = 'x' OR raw > 1 OR list = 1 OR raw = raw", FALSE, "values: bytes and arrays equal nothing"),
    # Comparison
    ("weight = 2501.0", TRUE, "comparison: exact and approximate numbers are comparable"),
    ("weight <> 2501", FALSE, "comparison: <>"),
    ("weight != 2500", TRUE, "comparison: !=, as in ActiveMQ"),
    ("weight >= 2501 AND weight <= 2501", TRUE, "comparison: >= and <="),
    ("weight < 2501 OR weight > 2501", FALSE, "comparison: < and >"),
    ("color = 1", FALSE, "comparison: values of different types are not equal"),
    ("color <> 1", FALSE, "comparison: nor are they unequal"),
    ("NOT color = 1", TRUE, "comparison: which is false, not unknown"),
    ("new = 1 OR 1 = new OR new > 0", FALSE, "comparison: a boolean is not a number"),
    ("color > weight", FALSE, "comparison: text has no order"),
    ("color > word OR word > color", FALSE, "comparison: not even with text"),
    ("new = TRUE AND sold <> TRUE", TRUE, "comparison: truths"),
    ("(weight > 1) = new", TRUE, "comparison: of conditions"),
    # Arithmetic
    ("1 + 2 * 3 = 7", TRUE, "arithmetic: * before +"),
    ("(1 + 2) * 3 = 9", TRUE, "arithmetic: parentheses"),
    ("10 - 4 - 3 = 3", TRUE, "arithmetic: from left to right"),
    ("7 / 2 = 3 AND -7 / 2 = -3", TRUE, "arithmetic: exact division truncates"),
    ("7 / 2. = 3.5", TRUE, "arithmetic: approximate division does not"),
    ("- -weight = +weight", TRUE, "arithmetic: signs"),
    ("weight-1=2500", TRUE, "arithmetic: without spaces"),
    ("weight / 0 = 1", UNKNOWN, "arithmetic: division by zero"),
    ("big + 1 > 0", UNKNOWN, "arithmetic: beyond 64 bits"),
    ("count + 1 = 3", UNKNOWN, "arithmetic: with text"),
    ("new + 1 = 2", UNKNOWN, "arithmetic: with a truth"),
    ("missing + 1 = 1", UNKNOWN, "arithmetic: with NULL"),
    # BETWEEN, IN, LIKE, IS NULL
    ("weight BETWEEN 2501 AND 2501", TRUE, "BETWEEN: bounds included"),
    ("weight NOT BETWEEN 2501 AND 2502", FALSE, "NOT BETWEEN"),
    ("weight BETWEEN 1 AND 2 OR new", TRUE, "BETWEEN: its AND is its own"),
    ("color BETWEEN 1 AND 2", FALSE, "BETWEEN: text"),
    ("color NOT BETWEEN 1 AND 2", FALSE, "NOT BETWEEN: of text is two comparisons"),
    ("missing BETWEEN 1 AND 2", UNKNOWN, "BETWEEN: NULL"),
    ("weight BETWEEN missing AND 2500", FALSE, "BETWEEN: one bound decides"),
    ("color IN ('red', 'blue')", TRUE, "IN"),
    ("color NOT IN ('red', 'blue')", FALSE, "NOT IN"),
    ("color IN ('red')", FALSE, "IN: none of them"),
    ("weight IN ('2501')", FALSE, "IN: no text"),
    ("missing IN ('red')", UNKNOWN, "IN: NULL"),
    ("missing NOT IN ('red')", UNKNOWN, "NOT IN: NULL"),
    ("phone LIKE '12%3'", TRUE, "LIKE: % is any sequence"),
    ("'x' <> phone AND phone NOT LIKE '12%3'", FALSE, "NOT LIKE"),
    ("word LIKE 'l_se'", TRUE, "LIKE: _ is one character"),
    ("word LIKE 'l__ose'", FALSE, "LIKE: and no less"),
    ("underscored LIKE '\\_%' ESCAPE '\\'", TRUE, "LIKE: ESCAPE"),
    ("color LIKE '\\_%' ESCAPE '\\'", FALSE, "LIKE: an escaped character is literal"),
    ("word LIKE '%o%o%' OR word LIKE '%_s%s%'", FALSE, "LIKE: each character once"),
    ("word LIKE '%_s%' AND phone LIKE '1%_9_%3'", TRUE, "LIKE: anywhere in the middle"),
    ("color LIKE 'b.ue' OR color LIKE 'bl'", FALSE, "LIKE: not a regular expression, and matches the whole text"),
    ("weight LIKE '2501'", FALSE, "LIKE: no text"),
    ("missing LIKE '%'", UNKNOWN, "LIKE: NULL"),
    ("missing IS NULL AND void IS NULL", TRUE, "IS NULL"),
    ("color IS NULL", FALSE, "IS NULL: false for an existing property"),
    ("color IS NOT NULL", TRUE, "IS NOT NULL"),
    # Precedence
    ("new OR new AND sold", TRUE, "precedence: AND before OR"),
    ("(new OR new) AND sold", FALSE, "precedence: parentheses"),
    ("NOT sold AND sold", FALSE, "precedence: NOT before AND"),
    ("NOT (sold AND sold)", TRUE, "precedence: NOT of parentheses"),
    ("NOT weight = 1", TRUE, "precedence: comparison before NOT"),
    ("not sold Or sold", TRUE, "precedence: in any case"),
    # Three values
    ("NOT missing", UNKNOWN, "NOT unknown"),
    ("new AND missing", UNKNOWN, "true AND unknown"),
    ("missing AND missing", UNKNOWN, "unknown AND unknown"),
    ("sold AND missing", FALSE, "false AND unknown"),
    ("missing AND sold", FALSE, "unknown AND false"),
    ("new OR missing", TRUE, "true OR unknown"),
    ("missing OR new", TRUE, "unknown OR true"),
    ("sold OR missing", UNKNOWN, "false OR unknown"),
    ("missing OR missing", UNKNOWN, "unknown OR unknown"),
    ("color AND new", UNKNOWN, "text is not a condition"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "_"), VALUES, ids=[row[-1] for row in VALUES])
def test_a_selector_matches_by_the_specification(text: str, expected: bool | None, _: str) -> None:
    assert Selector.parse(text).matches(SENT) is (expected is True)
    # The negation of unknown is unknown.
    negated = f"NOT ({text})" if text.strip() else "FALSE"
    assert Selector.parse(negated).matches(SENT) is (expected is False)


REFUSED = [
    # selector                   reason                                         character
    ("color = ",                 "expected a name or a value but found the end",  9),
    ("color = 'blue",            "a quote that is not closed",                    9),
    ('"color = 1',               "a quote that is not closed",                    1),
    ('"" = 1',                   "a quote that is not closed",                    1),
    ("color == 'blue'",          "expected a name or a value but found =",        8),
    ("color 'blue'",             "expected an operator or the end but found text in quotes", 7),
    ("a = b = c",                "expected an operator or the end but found =",   7),
    ("color # 1",                "a character that selectors do not allow",                        7),
    ("(color = 'blue'",          "expected ) but found the end",                 16),
    ("color = 'blue')",          "expected an operator or the end but found )",  15),
    ("7",                        "expected a condition but found a number",       1),
    ("'blue'",                   "expected a condition but found text",           1),
    ("color + 1",                "expected a condition but found a number",       1),
    ("new AND 7",                "expected a condition but found a number",       9),
    ("NOT 'blue'",               "expected a condition but found text",           5),
    ("color > 'blue'",           "expected a number but found text",              9),
    ("TRUE < FALSE",             "expected a number but found a condition",       1),
    ("'a' + 1 = 2",              "expected a number but found text",              1),
    ("-(a AND b) = 1",           "expected a number but found a condition",       3),
    ("weight BETWEEN 1 OR 2",    "expected AND but found OR",                    18),
    ("weight BETWEEN 'a' AND 2", "expected a number but found text",             16),
    ("color NOT = 'blue'",       "expected BETWEEN, IN or LIKE but found =",     11),
    ("color IN ()",              "expected text in quotes but found )",          11),
    ("color IN ('a' 'b')",       "expected ) but found text in quotes",          15),
    ("weight IN (1)",            "expected text in quotes but found a number",   12),
    ("'a' IN ('a')",             "expected a property but found text",            1),
    ("color LIKE 1",             "expected text in quotes but found a number",   12),
    ("color LIKE word",          "expected text in quotes but found a name",     12),
    ("color LIKE 'a' ESCAPE ''", "an escape that is not one character",          23),
    ("color LIKE 'a!' ESCAPE '!'", "nothing follows the escape character",       24),
    ("'a' IS NULL",              "expected a property but found text",            1),
    ("color IS 'blue'",          "expected NULL but found text in quotes",       10),
    ("color = NULL",             "expected a name or a value but found NULL",     9),
    ("escape = 1",               "expected a name or a value but found ESCAPE",   1),
    ("color = 1 /* why */",      "expected a name or a value but found *",       12),
    ("weight = 9223372036854775809", "a number beyond 64 bits",                  10),
    ("weight = 1e309",           "a number beyond 64 bits",                      10),
    ("weight = " + "9" * 5000,   "a number beyond 64 bits",                      10),
    ("weight = 09",              "'0' begins an invalid number",            10),
    ("weight = 0xG",             "'0' begins an invalid number",            10),
    ("weight = 12kg",            "'1' begins an invalid number",            10),
    ("(" * 51 + "new" + ")" * 51, "nested more than 50 deep",                    52),
    ("NOT " * 51 + "new",        "nested more than 50 deep",                    205),
    ("-" * 51 + "1 = 1",         "nested more than 50 deep",                     52),
    ("new OR " * 3000 + "new",   "more than 16384 characters, the first excess one", 16385),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason", "character"), REFUSED, ids=[row[0][:30] for row in REFUSED])
def test_an_invalid_selector_is_refused_with_reason_and_position(text: str, reason: str, character: int) -> None:
    with pytest.raises(SelectorError) as refused:
        Selector.parse(text)
    assert str(refused.value) == f"{reason} at character {character}"
    assert refused.value.position == character - 1


def test_a_message_without_fields_has_the_jms_defaults() -> None:
    plain = Properties()
    assert Selector.parse("JMSPriority = 4 AND JMSDeliveryMode = 'NON_PERSISTENT'").matches(plain)
    assert Selector.parse("JMSTimestamp IS NULL AND JMSType IS NULL").matches(plain)


def test_a_header_overrides_the_field_of_its_name() -> None:
    assert Selector.parse("JMSPriority = 9").matches(Properties(headers={"JMSPriority": 9}, priority=1))


@pytest.mark.parametrize("is_redelivered", [True, False])
def test_the_redelivered_flag_comes_from_the_consumer_side(is_redelivered: bool) -> None:
    selector = Selector.parse("JMSRedelivered")
    assert selector.matches(Properties(), 1, is_redelivered) == is_redelivered
    assert selector.matches(Properties(headers={"JMSRedelivered": not is_redelivered}), 1, is_redelivered) == (
        is_redelivered
    )
    assert not selector.matches(Properties())


def test_the_delivery_count_comes_from_the_consumer_side() -> None:
    selector = Selector.parse("JMSXDeliveryCount > 1")
    assert [selector.matches(Properties(), count) for count in (None, 1, 2)] == [False, False, True]
    assert not selector.matches(Properties(headers={"JMSXDeliveryCount": 9}), 1)


CONVERTED = [
    # selector                    headers                     matches
    ("age > 18",                  {"age": "21"},              True,  "text is converted to a number"),
    ("age > 18",                  {"age": "x21"},             False, "text that cannot be converted"),
    ("age > 1e3",                 {"age": "1.5e3"},           True,  "approximate"),
    ("age = 21",                  {"age": "21"},              True,  "equal"),
    ("age = '21'",                {"age": "21"},              True,  "text that is compared with text stays text"),
    ("age = '021'",               {"age": "21"},              False, "different numbers are not equal"),
    ("a < b",                     {"a": "9", "b": "10"},      True,  "order is of numbers"),
    ("a = b",                     {"a": "1", "b": "1.0"},     False, "equality of two texts is of text"),
    ("age + 1 = 22",              {"age": "21"},              True,  "arithmetic"),
    ("-age = 21",                 {"age": "-21"},             True,  "signs"),
    ("age BETWEEN 20 AND 22",     {"age": "21"},              True,  "BETWEEN"),
    ("sold = TRUE",               {"sold": "True"},           True,  "text is converted to a boolean"),
    ("sold = FALSE",              {"sold": "no"},             False, "text that cannot be converted"),
    ("sold <> TRUE",              {"sold": "no"},             False, "unconvertible text equals no boolean"),
    ("age = 1",                   {"age": "9" * 500},         False, "text that is too long for a number"),
    ("age > 1e300",               {"age": "9" * 301},         True,  "a long number is approximate"),
    ("age > 1",                   {"age": "٣"},               False, "digits are ASCII"),
    ("age LIKE '2_'",             {"age": "21"},              True,  "LIKE is of text"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "headers", "matches", "_"), CONVERTED, ids=[row[-1] for row in CONVERTED])
def test_text_is_converted_on_request(text: str, headers: dict[str, Value], matches: bool, _: str) -> None:
    message = Properties(headers=headers)
    assert Selector.parse(text, converts_text=True).matches(message) is matches
    assert Selector.parse("convert_string_expressions:" + text).matches(message) is matches


def test_names_may_have_hyphens_on_request() -> None:
    message = Properties(headers={"x-retry": "2", "x": 3, "retry": 1})
    assert Selector.parse("hyphenated_props:convert_string_expressions:x-retry = 2").matches(message)
    assert Selector.parse("hyphenated_props:x - retry = 2").matches(message)
    assert Selector.parse("x-retry = 2").matches(message)
    with pytest.raises(SelectorError, match="a character that selectors do not allow at character 18"):
        Selector.parse("hyphenated_props:?")


def test_a_long_selector_is_not_a_deep_one() -> None:
    many = " OR ".join(f"(n = {number} AND -(-n)+1-1*1 = {number})" for number in range(400))
    assert Selector.parse(many).matches(Properties(headers={"n": 399}))
