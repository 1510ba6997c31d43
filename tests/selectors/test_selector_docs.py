"""The documentation of selectors: its examples parse, and its list of operators, fields and limits is complete."""

import re
from pathlib import Path

import pytest

from gateway.selectors import Selector
from gateway.selectors.parser import MAX_DEPTH
from gateway.selectors.selector import MAX_LENGTH
from gateway.selectors.values import FIELDS

PAGE = (Path(__file__).parents[2] / "docs" / "selectors.md").read_text(encoding="utf-8")
SHOWN = [
    span
    for span in re.findall(r"`([^`\n]+)`", PAGE)
    if re.match(r"(NOT )?[\w\"-]+ (=|<>|<|>|NOT|IN|LIKE|BETWEEN|IS) ?.", span)
]


@pytest.mark.parametrize("text", SHOWN)
def test_the_examples_of_the_page_are_selectors(text: str) -> None:
    assert Selector.parse(text).text == text


def test_the_page_shows_each_operator() -> None:
    assert len(SHOWN) >= 15


def test_the_page_names_every_field() -> None:
    named = set(re.findall(r"`(JMS\w+)`", PAGE))
    assert named == {*FIELDS, "JMSXDeliveryCount", "JMSRedelivered"}


def test_the_page_has_the_limits() -> None:
    assert f"at most {MAX_LENGTH} characters" in PAGE
    assert f"at most {MAX_DEPTH} deep" in PAGE
