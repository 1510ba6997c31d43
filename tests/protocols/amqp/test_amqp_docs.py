"""The documentation of AMQP lists every reply code, capability and limit with its value."""

import re
from pathlib import Path

import pytest

from gateway.config.settings import Amqp
from gateway_amqp.errors import REPLY_CODES, REPLY_NAMES, VIOLATION_CODES
from gateway_amqp.tuning import CAPABILITIES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "protocols" / "amqp.md").read_text()
ROWS = {int(code): name for code, name in re.findall(r"^\| (\d{3}) \| (\w+) \|", PAGE, re.MULTILINE)}


@pytest.mark.parametrize("code", sorted({*REPLY_CODES.values(), *VIOLATION_CODES.values()}))
def test_every_reply_code_that_is_sent_is_documented(code: int) -> None:
    assert ROWS[code] == REPLY_NAMES[code]


@pytest.mark.parametrize("name", CAPABILITIES)
def test_every_capability_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`amqp\.(\w+)`", PAGE))))
def test_every_documented_setting_exists(name: str) -> None:
    assert name in Amqp.model_fields
