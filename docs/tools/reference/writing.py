"""The pages of the reference, and their writing: ``python -m docs.tools.reference.writing``."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.tools.reference import arguments, commands, errors, hooks, http_paths, metrics
from gateway.config.writing import write_files

ROOT: Final = Path(__file__).parents[3]

#: What returns each page, by its path.
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/metrics.md": metrics.page,
    "docs/reference/arguments.md": arguments.page,
    "docs/reference/errors.md": errors.page,
    "docs/reference/gateway.md": commands.gateway_page,
    "docs/reference/gatewayctl.md": commands.ctl_page,
    "docs/reference/hooks.md": hooks.page,
    "docs/reference/http.md": http_paths.page,
}


def write_pages(root: Path) -> None:
    """Write all generated pages below ``root``, and ``etc/gateway.toml``."""
    write_files(root)
    for path, page in PAGES.items():
        (root / path).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write_pages(ROOT)
