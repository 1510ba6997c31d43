"""The preparation of a release: it stops at what is missing, and writes what belongs to the packages."""

import hashlib
import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from gateway.version import VERSION

ROOT: Final = Path(__file__).parents[3]
RELEASED: Final = (
    f"# Changelog\n\n## [{VERSION}] - 2026-12-01\n\n### Added\n\n- All of it.\n\n## [0.0.1] - 2026-01-01\n\n- Less.\n"
)


@pytest.fixture
def release() -> ModuleType:
    """The program."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "etc" / "packaging" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clean checkout of a version that is ready."""
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "version.py").write_text(f'VERSION = "{VERSION}"\n')
    chart = tmp_path / "etc" / "helm" / "gateway-broker"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text(f'version: {VERSION}\nappVersion: "{VERSION}"\n')
    (tmp_path / "CHANGELOG.md").write_text(RELEASED)
    (tmp_path / ".gitignore").write_text("dist/\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    commit(tmp_path)
    return tmp_path


def commit(checkout: Path) -> None:
    subprocess.run(["git", "add", "--all"], cwd=checkout, check=True)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *author, "commit", "--quiet", "--message", "all"], cwd=checkout, check=True)


def test_a_checkout_that_is_ready_has_the_version_of_the_changelog(release: ModuleType, checkout: Path) -> None:
    assert release.check(checkout) == VERSION


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("CHANGELOG.md", "## [Unreleased]\n\n- All.\n", "first section of CHANGELOG.md must be that of the release"),
        ("CHANGELOG.md", "## [9.9.9] - 2026-12-01\n\n- All.\n", f"version 9.9.9, but gateway/version.py {VERSION}"),
        ("CHANGELOG.md", f"## [{VERSION}] - 2026-12-01\n", "says nothing about"),
        ("etc/helm/gateway-broker/Chart.yaml", "version: 9.9.9\n", "but version of Chart.yaml 9.9.9"),
    ],
)
def test_it_stops_at_what_is_missing(release: ModuleType, checkout: Path, file: str, content: str, reason: str) -> None:
    (checkout / file).write_text(content)
    commit(checkout)
    with pytest.raises(release.NotReady, match=reason):
        release.check(checkout)


def test_it_stops_at_changes_that_are_not_committed(release: ModuleType, checkout: Path) -> None:
    (checkout / "more").touch()
    with pytest.raises(release.NotReady, match="not committed"):
        release.check(checkout)


def test_it_writes_checksums_the_bill_of_materials_and_the_message_of_the_tag(
    release: ModuleType, checkout: Path
) -> None:
    dist = checkout / "dist"
    dist.mkdir()
    with pytest.raises(release.NotReady, match=r"dist has no \*\.tar\.gz"):
        release.finish(checkout, VERSION)
    names = ("{}.tar.gz", "{}-py3-none-any.whl", "{}-cp311-cp311-linux_x86_64.whl", "{}_amd64.deb")
    for name in names:
        (dist / name.format(VERSION)).write_text(name)
    commands = release.finish(checkout, VERSION)
    assert f"v{VERSION}" in commands
    assert (dist / "tag-message.txt").read_text() == f"gateway {VERSION}\n\n### Added\n\n- All of it.\n"
    lines = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert set(lines) == {"sbom.json", *(name.format(VERSION) for name in names)}
    assert lines[f"{VERSION}_amd64.deb"] == hashlib.sha256(b"{}_amd64.deb").hexdigest()
    bill: dict[str, Any] = json.loads((dist / "sbom.json").read_text())
    components = {component["name"] for component in bill["components"]}
    # wcwidth is what tabulate[widechars] needs.
    assert {"twisted", "lmdb", "pamqp", "zope-interface", "tabulate", "wcwidth"} <= components
    assert len(components) == len(bill["components"])
    assert "pytest" not in components


@pytest.mark.parametrize("arguments", [(), ("a.whl", "b.whl", "1", "."), ("absent.whl", "1", ".")])
def test_the_debian_package_is_of_one_wheel(arguments: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("a.whl", "b.whl"):
        (tmp_path / name).touch()
    command = [ROOT / "etc" / "packaging" / "make-deb.sh", *arguments]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == f"make-deb.sh needs one wheel, its version and a directory, not: {' '.join(arguments)}\n"
