"""The security documentation names existing settings."""

import re
from pathlib import Path

import pytest

from gateway.config.catalogue import settings_by_key

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
NAMED = sorted(
    set(
        re.findall(
            r"`((?:amqp|mqtt|stomp|web_mqtt|web_stomp|management|login|limits|tls|log|queues)\.\w+)", PAGE.read_text()
        )
    )
)


@pytest.mark.parametrize("key", NAMED)
def test_a_setting_named_on_the_security_page_exists(key: str) -> None:
    assert key in settings_by_key()


def test_the_security_page_names_the_limits_table_and_the_login_settings() -> None:
    page = PAGE.read_text()
    assert "`[limits]`" in page
    assert len([key for key in NAMED if key.startswith("login.")]) >= 6
