"""Prepare a release: ``release.py check`` before anything is built, ``release.py finish`` when ``dist`` is complete.

``check`` compares the version in the changelog, the program and the chart, and requires a clean checkout. ``finish``
writes into ``dist`` what a release has beside its packages: ``SHA256SUMS``, ``sbom.json`` (CycloneDX) and
``tag-message.txt``, and prints the commands that publish it.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PACKAGE = "gateway-broker"

#: The first heading of a version in the changelog, and its text up to the next one.
_SECTION = re.compile(
    r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\S+))?\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)


class NotReady(Exception):
    """Something is missing; the message is one line."""


def newest(changelog: str) -> tuple[str, str]:
    """Return the version and the text of the newest section. :raises NotReady: if it is not that of a release."""
    found = _SECTION.search(changelog)
    if found is None or found["date"] is None:
        raise NotReady("the first section of CHANGELOG.md must be that of the release: ## [0.1.0] - 2026-01-31")
    return found["version"], found["text"].strip()


def versions(root: Path) -> dict[str, str]:
    """Return the version that each file names."""
    program = re.search(r'^VERSION = "(.+)"', (root / "gateway" / "version.py").read_text(), re.MULTILINE)
    chart = (root / "etc" / "helm" / "gateway-broker" / "Chart.yaml").read_text()
    names = {key: re.search(rf'^{key}: "?([^"\n]+)', chart, re.MULTILINE) for key in ("version", "appVersion")}
    found = {"gateway/version.py": program, **{f"{key} of Chart.yaml": match for key, match in names.items()}}
    return {place: match[1] for place, match in found.items() if match is not None}


def check(root: Path) -> str:
    """Return the version of the release. :raises NotReady: with what is missing."""
    version, text = newest((root / "CHANGELOG.md").read_text())
    others = [f"{place} {other}" for place, other in versions(root).items() if other != version]
    if others:
        raise NotReady(f"CHANGELOG.md has version {version}, but {', '.join(others)}")
    if not text:
        raise NotReady(f"CHANGELOG.md says nothing about version {version}")
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True)
    if changed.stdout:
        raise NotReady("the checkout has changes that are not committed")
    return version


def requirements(name: str, known: dict[tuple[str, str], Distribution], extra: str = "") -> None:
    """Add a package and what it needs to ``known``, by name and extra, as installed in this environment.

    An extra of a requirement counts, too: ``tabulate[widechars]`` needs wcwidth.
    """
    if (name, extra) in known:
        return
    known[name, extra] = distribution(name)
    for line in known[name, extra].requires or ():
        required = Requirement(line)
        if required.marker is None or required.marker.evaluate({"extra": extra}):
            other = re.sub(r"[-_.]+", "-", required.name).lower()
            for wanted in ("", *required.extras):
                requirements(other, known, wanted)


def bill_of_materials(version: str) -> dict[str, Any]:
    """Return the packages that a broker needs, in the form of CycloneDX 1.5."""
    known: dict[tuple[str, str], Distribution] = {}
    requirements(PACKAGE, known)
    packages = {name: package for (name, _), package in known.items() if name != PACKAGE}
    components = [
        {
            "type": "library",
            "name": name,
            "version": package.version,
            "purl": f"pkg:pypi/{name}@{package.version}",
        }
        for name, package in sorted(packages.items())
    ]
    subject = {"type": "application", "name": PACKAGE, "version": version, "purl": f"pkg:pypi/{PACKAGE}@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def checksums(files: Iterator[Path]) -> str:
    """Return a line for each file, as ``sha256sum --check`` reads them."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(files))


def finish(root: Path, version: str) -> str:
    """Write the files beside the packages; return the commands that publish all. :raises NotReady: without packages."""
    dist = root / "dist"
    kinds = ("*.tar.gz", "*-py3-none-any.whl", "*-linux_*.whl", "*.deb")
    missing = [kind for kind in kinds if not any(version in path.name for path in dist.glob(kind))]
    if missing:
        raise NotReady(f"dist has no {', '.join(missing)} of version {version}")
    _, text = newest((root / "CHANGELOG.md").read_text())
    (dist / "tag-message.txt").write_text(f"gateway {version}\n\n{text}\n")
    (dist / "sbom.json").write_text(json.dumps(bill_of_materials(version), indent=2) + "\n")
    published = (path for path in dist.iterdir() if path.name not in ("SHA256SUMS", "tag-message.txt"))
    (dist / "SHA256SUMS").write_text(checksums(published))
    return (
        f"git tag --annotate --cleanup=verbatim --file=dist/tag-message.txt v{version} && git push origin v{version}\n"
        f"twine upload dist/*.tar.gz dist/*-py3-none-any.whl  # and the wheels of cibuildwheel, for other platforms\n"
        f"docker build --file etc/container/Dockerfile --tag gateway-broker:{version} .\n"
        f"docker build --file etc/container/Dockerfile --target arrow --tag gateway-broker:{version}-arrow ."
    )


def main(step: str) -> None:
    """Do one step; end with one line if something is missing."""
    try:
        version = check(ROOT)
        if step == "finish":
            print(finish(ROOT, version))
        else:
            print(f"version {version}")
    except NotReady as error:
        sys.exit(f"make release: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
