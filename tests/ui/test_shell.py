"""The shell: login and logout, navigation, shortcuts, virtual host, theme, phone."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.ui.browser import PHONE, Browser


def test_a_wrong_password_is_refused_with_a_message(window: Browser) -> None:
    window.log_out()
    window.field("User name").send_keys("guest")
    window.field("Password").send_keys("wrong")
    window.press("Log in")
    window.see("Login failed")
    assert "401" in window.complaints()[-1]


def test_a_user_without_a_tag_cannot_log_in(window: Browser) -> None:
    window.log_out()
    window.field("User name").send_keys("plain")
    window.field("Password").send_keys("plain")
    window.press("Log in")
    window.see("Not management user")
    window.complaints()


def test_a_logout_ends_the_session(browser: Browser) -> None:
    browser.open("/queues")
    browser.press("Log out")
    browser.see("You are logged out.")
    browser.user = ""
    browser.load("/queues")
    browser.see("User name")
    browser.forget()


def test_a_session_survives_a_reload(browser: Browser) -> None:
    browser.open("/queues")
    browser.driver.refresh()
    browser.see("orders.audit")


def test_the_navigation_leads_to_the_pages(browser: Browser) -> None:
    browser.open("/")
    browser.press("Exchanges")
    browser.see("amq.topic")
    assert browser.all("nav a[aria-current=page]")[0].text == "Exchanges"
    assert browser.driver.title == "Exchanges · gateway"


def test_the_keyboard_reaches_all_pages(browser: Browser) -> None:
    browser.open("/")
    browser.keys("gq")
    browser.see("orders.audit")
    browser.keys("/")
    browser.driver.switch_to.active_element.send_keys("backlog")
    browser.see("1 of ")
    browser.keys("?")
    browser.see("Keyboard shortcuts")
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    browser.see_not("Go to Overview")


def test_the_first_key_skips_to_the_page(browser: Browser) -> None:
    browser.load("/")
    browser.see("Overview")
    browser.all("body")[0].send_keys(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Skip to the page"
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.driver.switch_to.active_element.get_attribute("id") == "main"


def test_a_virtual_host_limits_the_lists(browser: Browser) -> None:
    browser.open("/queues")
    browser.see("carts")
    browser.fill("Virtual host", "shop")
    browser.see("1 queue")
    browser.see_not("backlog")
    browser.fill("Virtual host", "All")
    browser.see("backlog")


def test_the_theme_can_be_chosen(browser: Browser) -> None:
    browser.open("/")
    background = "return getComputedStyle(document.documentElement).backgroundColor"
    bright = browser.driver.execute_script(background)
    browser.press("Theme: system")
    browser.press("Theme: light")
    assert browser.driver.execute_script(background) != bright
    browser.press("Theme: dark")
    assert browser.driver.execute_script(background) == bright


def test_the_menu_opens_on_a_phone(browser: Browser) -> None:
    browser.open("/")
    browser.resize(PHONE)
    browser.press("Menu")
    browser.press("Exchanges")
    browser.see("amq.topic")


def test_an_unknown_page_says_so(browser: Browser) -> None:
    browser.go("/nowhere")
    browser.see("There is no such page")


def test_the_selected_tab_is_whole_on_a_phone(browser: Browser) -> None:
    browser.resize(PHONE)
    browser.open("/users/otto?tab=Password%20and%20tags")
    beyond = """const end = (each) => document.querySelector(each).getBoundingClientRect().right;
        return end('.tabs [aria-current]') - end('.tabs')"""
    browser.wait(lambda: browser.driver.execute_script(beyond) < 1, "the selected tab is cut")


@pytest.mark.parametrize("page", ["/users/otto", "/queues/%2F/orders.new?tab=Consumers"])
def test_a_table_is_whole_on_a_phone(browser: Browser, page: str) -> None:
    browser.resize(PHONE)
    browser.open(page)
    browser.wait(lambda: browser.all(".table-scroll td"), "there is no table")
    beyond = """const excess = (each) => each.scrollWidth - each.clientWidth;
        return Math.max(...[...document.querySelectorAll('.table-scroll')].map(excess))"""
    assert browser.driver.execute_script(beyond) <= 0


#: Renders a component that shows a store, changes the store before the component observes it, and returns what is shown
#: after some frames.
_CHANGED_AT_ONCE = """
const done = arguments[arguments.length - 1];
(async () => {
  const { html, render } = await import("/lib/html.js");
  const { store, useStore } = await import("/lib/store.js");
  const observed = store("before");
  const place = document.createElement("div");
  function Shown() { return html`<b>${useStore(observed)}</b>`; }
  render(html`<${Shown} />`, place);
  observed.set("after");
  const look = (left) => {
    if (place.textContent === "after" || left === 0) done(place.textContent);
    else setTimeout(() => look(left - 1), 20);
  };
  look(100);
})();
"""


def test_a_choice_right_after_the_start_of_a_page_is_shown(browser: Browser) -> None:
    """Otherwise a page would go on with the virtual host of before: an import would compare with the whole broker."""
    browser.open("/definitions")
    assert browser.driver.execute_async_script(_CHANGED_AT_ONCE) == "after"
