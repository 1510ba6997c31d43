"""Building of the site: ``make site``, or ``python -m docs.tools.site.building --out DIR``."""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs.tools.site.staging import stage

ROOT: Final = Path(__file__).parents[3]

#: What a browser loads for a page by itself: scripts, styles, fonts and images.
_LOADED: Final = re.compile(
    r"""<(?:script|img|iframe)[^>]*\ssrc="((?:https?:)?//[^"]*)"|<link[^>]*\srel="(?:stylesheet|preload|icon)"[^>]*"""
    r"""\shref="((?:https?:)?//[^"]*)"|url\(["']?((?:https?:)?//[^)"']*)|@import\s+["']((?:https?:)?//[^"']*)"""
)


class SiteError(Exception):
    """The site cannot be built, with the warnings of Sphinx or the addresses that it would load."""


def build(out: Path, root: Path = ROOT) -> None:
    """Build the site from the pages below ``root``. :raises SiteError: for any warning, such as a broken link."""
    with tempfile.TemporaryDirectory() as staged:
        stage(root, Path(staged))
        configuration = str(Path(__file__).parent)
        command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--nitpicky"]
        command += ["--conf-dir", configuration, "--doctree-dir", f"{staged}/.doctrees", staged, str(out)]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SiteError(ended.stderr.replace(f"{staged}/", "").strip())
    if loaded := sorted(set(loaded_from_elsewhere(out))):
        raise SiteError("the site would load " + ", ".join(loaded))


def loaded_from_elsewhere(out: Path) -> Iterator[str]:
    """Yield the addresses on other hosts that a browser would load for the pages and styles of a built site."""
    for path in out.rglob("*"):
        if path.suffix in (".html", ".css"):
            for groups in _LOADED.findall(path.read_text(encoding="utf-8")):
                yield next(filter(None, groups))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m docs.tools.site.building", description="Build the site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="the directory to write")
    out: Path = parser.parse_args().out
    try:
        build(out)
    except SiteError as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    print(f"{out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
