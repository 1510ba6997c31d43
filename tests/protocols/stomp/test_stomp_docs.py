"""The documentation of STOMP lists every message of an ERROR, queue argument, destination and setting."""

import re
from pathlib import Path

import pytest

from gateway.config.settings import Settings
from gateway_stomp import queue_headers, translate
from gateway_stomp.destinations import DestinationKind
from gateway_stomp.errors import MESSAGES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "protocols" / "stomp.md").read_text(encoding="utf-8")
SOURCES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "protocols" / "gateway_stomp").glob("*.py"))

SAID = sorted(
    set(re.findall(r'StompError\(\s*"([^"]+)"', SOURCES)) | set(re.findall(r'self\._end\("([^"]+)"', SOURCES))
)


def test_the_source_contains_error_messages() -> None:
    assert len(SAID) > 15


@pytest.mark.parametrize("message", [*SAID, *MESSAGES.values(), "Processing error"])
def test_every_error_message_is_documented(message: str) -> None:
    assert f"`{message}`" in PAGE


@pytest.mark.parametrize("header", sorted(translate.TEXTS.keys() | translate.OF_FRAMES))
def test_every_supported_header_is_documented(header: str) -> None:
    assert f"`{header}`" in PAGE


@pytest.mark.parametrize(
    "argument", [*queue_headers.TEXTS, *queue_headers.NUMBERS, *queue_headers.BOOLEANS], ids=lambda argument: argument
)
def test_every_queue_argument_is_documented(argument: str) -> None:
    assert f"`{argument}`" in PAGE


@pytest.mark.parametrize("kind", DestinationKind, ids=lambda kind: kind.name)
def test_every_kind_of_destination_is_documented(kind: DestinationKind) -> None:
    assert f"| `{kind.value}/" in PAGE


@pytest.mark.parametrize(("section", "name"), sorted(set(re.findall(r"`(stomps?|web_stomps?)\.(\w+)", PAGE))))
def test_every_documented_setting_exists(section: str, name: str) -> None:
    assert name in type(getattr(Settings(), section)).model_fields
