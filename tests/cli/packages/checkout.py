"""A copy of the checkout without what was built in it: what a reader of the source begins with."""

import shutil
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]

#: What a build reads; the tests run beside others that write into the checkout.
SOURCES: Final = (
    *("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"),
    *(
        "Makefile",
        "constraints.txt",
        "gateway",
        "protocols",
        "storage",
        "plugins",
        "pipeline",
        "etc",
        "docs",
        "examples",
    ),
)


def copy_checkout(place: Path) -> None:
    """Copy the sources into a directory."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "node_modules")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, place / name)
