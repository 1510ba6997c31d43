"""The man pages and completion files in ``etc`` are those of the commands."""

from pathlib import Path

from gateway.cli.ctl.main import gatewayctl
from gateway.cli.main import gateway
from gateway.cli.manual import manual_page, packaged_files

ROOT = Path(__file__).parents[2]


def test_the_files_are_current() -> None:
    stale = [place for place, content in packaged_files() if (ROOT / "etc" / place).read_text("utf-8") != content]
    assert stale == [], "run: make docs"


def test_a_page_has_every_command() -> None:
    for program, group in (("gateway", gateway), ("gatewayctl", gatewayctl)):
        page = manual_page(program)
        missing = [name for name in group.commands if f'.SS "{program} {name.replace("-", chr(92) + "-")}' not in page]
        assert missing == []
