"""constraints.txt pins each dependency of pyproject.toml to a version that pyproject.toml allows."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
REQUIRED = [Requirement(each) for each in [*PROJECT["dependencies"], *EXTRAS] if not each.startswith(PROJECT["name"])]


def pinned_in(path: str) -> dict[str, str]:
    """Return the version of each package that a file of constraints pins."""
    return {
        canonicalize_name(name): version
        for line in (ROOT / path).read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
        for name, version in [line.split("==")]
    }


PINNED = pinned_in("constraints.txt")


@pytest.mark.parametrize("requirement", REQUIRED, ids=str)
def test_a_dependency_is_pinned_to_an_allowed_version(requirement: Requirement) -> None:
    version = PINNED.get(canonicalize_name(requirement.name))
    assert version is not None, "run: make constraints"
    assert requirement.specifier.contains(version, prereleases=True)


def test_each_line_pins_one_version() -> None:
    assert len(PINNED) > len({canonicalize_name(each.name) for each in REQUIRED})


def test_the_oldest_spark_is_the_lower_bound() -> None:
    oldest = pinned_in("tests/pipeline/versions/constraints.txt")
    [bound] = {str(each.specifier) for each in REQUIRED if each.name == "pyspark"}
    assert f">={'.'.join(oldest['pyspark'].split('.')[:2])}" in bound.split(",")
