"""The generated pages of the reference are those of the code, and name everything that it has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from docs.tools.reference.arguments import OTHER_NAMES
from docs.tools.reference.cures import CURES, MissingCure, cure_of, unused
from docs.tools.reference.error_texts import TOPS, error_texts, text_of
from docs.tools.reference.errors import ADVICE
from docs.tools.reference.writing import PAGES
from gateway.config.catalogue import settings_by_key
from gateway.kernel.settings.queue_arguments import QUEUE_ARGUMENTS
from gateway_mqtt.codec.reasons import REFUSALS

ROOT: Final = Path(__file__).parents[2]


@pytest.mark.parametrize("path", PAGES)
def test_each_page_is_what_the_code_says(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == PAGES[path](), "run: make docs"


def x_names() -> Iterator[str]:
    """Yield each text of the sources that is a name with ``x-``, except those of the simulation and of tests."""
    for top in (*TOPS, "pipeline"):
        for path in (ROOT / top).rglob("*.py"):
            if not {"simulation", "testing"} & set(path.parts):
                for node in ast.walk(ast.parse(path.read_text())):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield from re.findall(r"^x-[a-z0-9-]*[a-z0-9]$", node.value)


def test_each_name_with_x_has_a_meaning_and_no_other_has_one() -> None:
    described = {name for names in OTHER_NAMES.values() for name in names}
    assert described | QUEUE_ARGUMENTS.keys() == set(x_names())
    assert described & QUEUE_ARGUMENTS.keys() == {"x-message-deduplication"}  # a type of exchange, too


def test_each_refusal_has_a_cause_and_a_cure() -> None:
    assert REFUSALS.keys() <= ADVICE.keys()


def test_a_text_without_a_cure_is_named_with_the_place_to_write_one() -> None:
    with pytest.raises(MissingCure, match=r"docs/tools/reference/cures: the text of a NotFound .*: 'a new text'"):
        cure_of("NotFound", "a new text")


def test_each_text_has_a_cause_and_a_cure_and_each_cure_a_text() -> None:
    texts = [(kind, text) for kind, text, _ in error_texts({kind.__name__ for kind in ADVICE})]
    assert len(texts) > 300
    assert [cure.pattern for cure in unused(texts)] == []
    assert all(cure.cause and cure.cure for cures in CURES.values() for cure in cures)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("'no such queue'", "no such queue"),
        ("f'no queue {name!r} in {self.vhost.name}'", "no queue 'NAME' in NAME"),
        ("f'{queue.name} has {len(rows)} rows of {x + 1}'", "QUEUE_NAME has ROWS rows of X"),
        ("f'{self._limit():,}'", "LIMIT"),
        ("str(error)", ""),
    ],
)
def test_a_value_in_a_text_becomes_its_name(source: str, text: str) -> None:
    assert text_of(ast.parse(source, mode="eval").body) == text


def test_each_setting_that_a_cure_names_exists() -> None:
    known = settings_by_key()
    sections = {key.partition(".")[0] for key in known if "." in key}
    texts = [text for cures in CURES.values() for cure in cures for text in (cure.cause, cure.cure)]
    named = {name for text in texts for name in re.findall(r"`([a-z0-9_]+\.[a-z0-9_]+)[` =]", text)}
    settings = {name for name in named if name.partition(".")[0] in sections}
    assert settings - set(known) == set()
    assert "amqp.max_held_size" in settings
