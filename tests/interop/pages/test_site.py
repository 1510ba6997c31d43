"""The site: its links have targets, it has a search, and it loads nothing from elsewhere."""

from pathlib import Path

import pytest

from docs.tools.site import navigation, staging
from docs.tools.site.building import SiteError, build, loaded_from_elsewhere
from docs.tools.site.navigation import PARTS, Part
from docs.tools.site.staging import with_links_to_files


@pytest.mark.timeout(600)  # 13 s of a processor that others use, too
def test_the_site_is_built_and_has_navigation_and_search(tmp_path: Path) -> None:
    build(tmp_path)
    front = (tmp_path / "index.html").read_text()
    assert [part for part in PARTS if f'href="#{part.lower().replace(" ", "-")}"' not in front] == []
    for part in PARTS.values():
        for page in part.pages:
            path = page.removesuffix(".md") + ".html"
            assert (tmp_path / path).exists()
            assert f'href="{path}"' in front
    assert "deduplication" in (tmp_path / "searchindex.js").read_text()
    assert 'id="every-argument-and-policy-key"' in (tmp_path / "docs/queues.html").read_text()
    assert "0001-changes-and-apply.html" in (tmp_path / "docs/adr/index.html").read_text()


@pytest.mark.parametrize("link", ["missing.md", "README.md#no-such-heading", "#neither"])
def test_a_broken_link_is_an_error(link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"Tutorials": Part("Learn.", {"First steps": ("README.md",)})}
    monkeypatch.setattr(navigation, "PARTS", parts)
    monkeypatch.setattr(staging, "PARTS", parts)
    monkeypatch.setattr(staging, "LISTED", {})
    (tmp_path / "README.md").write_text(f"# Title\n\n[a link]({link})\n")
    with pytest.raises(SiteError, match=r"README\.md:3"):
        build(tmp_path / "site", tmp_path)


def test_links_to_folders_lead_to_their_pages(tmp_path: Path) -> None:
    for folder in ("with", "without", "docs/adr"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "with/README.md").touch()
    page = tmp_path / "README.md"
    page.write_text("[a](with) [b](without/) [c](docs/adr) [d](with/README.md#x)\n\n```sh\n[e](with)\n```\n")
    text, linked = with_links_to_files(page, tmp_path)
    assert text == ("[a](with/README.md) b [c](docs/adr/index.md) [d](with/README.md#x)\n\n```sh\n[e](with)\n```\n")
    assert linked == [tmp_path / "with/README.md"] * 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script defer src="https://elsewhere.example/a"></script>'),
        ("a.html", '<link href="x" rel="icon"><link rel="stylesheet" href="https://elsewhere.example/a">'),
        ("a.html", '<img alt="" src="https://elsewhere.example/a">'),
        ("a.css", "@font-face { src: url('https://elsewhere.example/a'); }"),
        ("a.css", '@import "https://elsewhere.example/a";'),
    ],
)
def test_what_a_browser_would_load_from_elsewhere_is_found(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text + '<a href="https://links.example/are/fine">a link</a>')
    assert list(loaded_from_elsewhere(tmp_path)) == ["https://elsewhere.example/a"]
