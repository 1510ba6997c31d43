"""The documentation lists every limit of virtual hosts and users."""

from pathlib import Path

import pytest

from gateway.config.limits import LimitSettings
from gateway.kernel.settings.limits import USER_LIMITS, VHOST_LIMITS

DOCS = Path(__file__).parents[3] / "docs"

#: The limits, the page with a table row that lists them, and the beginning of that row.
LISTS = [
    pytest.param(VHOST_LIMITS, "gatewayctl.md", "| `set_vhost_limits", id="gatewayctl: virtual hosts"),
    pytest.param(USER_LIMITS, "gatewayctl.md", "| `set_user_limits", id="gatewayctl: users"),
    pytest.param(VHOST_LIMITS, "management.md", "| `/vhost-limits/{vhost}/{limit}`", id="HTTP: virtual hosts"),
    pytest.param(USER_LIMITS, "management.md", "| `/user-limits/{user}/{limit}`", id="HTTP: users"),
]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("limits", "name", "beginning"), LISTS)
def test_the_documentation_table_names_every_limit(limits: tuple[str, ...], name: str, beginning: str) -> None:
    [row] = [line for line in page(name).splitlines() if line.startswith(beginning)]
    assert [limit for limit in limits if f"`{limit}`" not in row] == []


@pytest.mark.parametrize("name", ["access.md", "management.md", "security.md"])
def test_the_documentation_page_names_every_limit(name: str) -> None:
    assert [limit for limit in {*VHOST_LIMITS, *USER_LIMITS} if f"`{limit}`" not in page(name)] == []


@pytest.mark.parametrize(("owner", "limits"), [("vhost", VHOST_LIMITS), ("user", USER_LIMITS)])
def test_every_limit_has_a_default_setting_of_the_node(owner: str, limits: tuple[str, ...]) -> None:
    settings = {f"{limit.removeprefix('max-')}_per_{owner}" for limit in limits}
    assert settings - LimitSettings.model_fields.keys() == set()
