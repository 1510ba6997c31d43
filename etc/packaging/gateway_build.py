"""The build backend: that of setuptools, with the compiler of machine code where ``GATEWAY_COMPILE=1`` asks for it.

It is here because setuptools runs ``setup.py`` to ask what a build needs, which must not compile. Older versions of
Python read this file, too, before pip says which one is required.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks that stay as they are

#: What pip passes on from its command line: a table, or None.
Settings = Any


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return the further requirements of a wheel: those of the compiler, which reads the types of all dependencies."""
    if not _is_compiled():
        return []
    import tomllib

    with open("pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    compiler = ("mypy", "setuptools", "types-")
    tools = [line for line in project["optional-dependencies"]["test-broker"] if line.startswith(compiler)]
    return [*tools, *project["dependencies"]]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """Return the further requirements of an editable installation: none, as its modules are the source."""
    return []


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Return the further requirements of a source archive: none."""
    return []


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the metadata, without compiling."""
    return _from_source(build_meta.prepare_metadata_for_build_wheel, metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the metadata, without compiling."""
    return _from_source(build_meta.prepare_metadata_for_build_editable, metadata_directory, config_settings)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Build the source archive, without compiling."""
    return _from_source(build_meta.build_sdist, sdist_directory, config_settings)


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the wheel; say what it lacks if it is not compiled."""
    if not _is_compiled():
        print(
            "gateway-broker: this wheel is Python source. Machine code needs half of the CPU or less: set"
            " GATEWAY_COMPILE=1, with a C compiler and Python's headers.",
            file=sys.stderr,
        )
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def _is_compiled() -> bool:
    return os.environ.get("GATEWAY_COMPILE") == "1"


def _from_source(build: Any, *arguments: Any) -> str:
    asked = os.environ.pop("GATEWAY_COMPILE", None)
    try:
        name: str = build(*arguments)
    finally:
        if asked is not None:
            os.environ["GATEWAY_COMPILE"] = asked
    return name
