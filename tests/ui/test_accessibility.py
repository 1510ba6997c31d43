"""Each page: no violation that axe-core finds, in light and dark; no errors; nothing is wider than a phone."""

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from tests.ui.browser import DESKTOP, NODE_PACKAGE, PHONE, Browser
from tests.ui.pages import PAGES

#: Where screenshots are written, for people to look at; none without this variable.
SCREENSHOTS: Final = os.environ.get("GATEWAY_UI_SCREENSHOTS")

_RUN: Final = """
const [options, done] = arguments;
axe.run(document, {resultTypes: ['violations'], ...options}).then(({violations}) => done(JSON.stringify(violations.map(
  ({id, help, nodes}) => [id, help, nodes.slice(0, 3).map((node) => node.html + node.failureSummary)]))));
"""


def violations(browser: Browser, *rules: str) -> Any:
    """Return what axe-core finds by all rules, or by the given ones."""
    if browser.driver.execute_script("return typeof axe === 'undefined'"):
        browser.driver.execute_script((NODE_PACKAGE / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
    options = {"runOnly": list(rules)} if rules else {}
    return json.loads(browser.driver.execute_async_script(_RUN, options))


def photograph(browser: Browser, page: str, kind: str) -> None:
    if SCREENSHOTS:
        name = "".join(letter if letter.isalnum() else "-" for letter in page).strip("-") or "overview"
        browser.screenshot(Path(SCREENSHOTS) / f"{name}.{kind}.png")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_accessible_in_light_and_dark_and_on_a_phone(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.see(PAGES[page])
    assert violations(browser) == []
    photograph(browser, page, "light")
    browser.set_theme("dark")
    assert violations(browser, "color-contrast") == []
    photograph(browser, page, "dark")
    browser.resize(PHONE)
    width = "return document.documentElement.scrollWidth"  # charts follow the size of the window a little later
    browser.wait(lambda: browser.driver.execute_script(width) <= PHONE[0], "the page is wider than the screen")
    photograph(browser, page, "phone")


def test_the_login_page_is_accessible(window: Browser) -> None:
    window.resize(DESKTOP)
    window.set_theme("light")
    window.log_out()
    assert violations(window) == []
    photograph(window, "login", "light")
