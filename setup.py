"""Builds the packages; with ``GATEWAY_COMPILE=1`` in the environment, the modules every message meets as machine code.

``pyproject.toml`` lists those modules (``tool.gateway.compiled``) and says everything else. See
docs/adr/0008-compiled-wheels.md.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from setuptools import Extension, setup

#: Calls go straight to where they lead, and not by way of a table of what others might have put there: a small message
#: meets some hundred functions, each of them once, so what is between them counts as much as they do.
COMPILE = ["-O2", "-fno-plt", "-fno-semantic-interposition"]
LINK = ["-Wl,-Bsymbolic"]

#: By ``GATEWAY_PROFILE``: a build that counts what it does, and one that heeds what another counted, so that what is
#: often done lies together. ``make wheel`` makes both; what its trial did not meet is compiled as without. A quick one
#: takes half as long, for tests: what it does is the same.
PROFILE = {
    "": [],
    "quick": ["-O0"],
    "count": ["-fprofile-generate"],
    "heed": ["-fprofile-use", "-fprofile-partial-training", "-Wno-missing-profile", "-Wno-coverage-mismatch"],
}


def extensions() -> list[Extension]:
    """Return the listed modules as C, and what is written in it; none unless asked for."""
    if os.environ.get("GATEWAY_COMPILE") != "1":
        return []
    require_compiler()
    profile = asked_profile()
    try:
        from mypyc.build import mypycify
    except ImportError:
        sys.exit("GATEWAY_COMPILE=1 needs mypy: pip install 'mypy[mypyc]'")
    with open("pyproject.toml", "rb") as file:
        modules = tomllib.load(file)["tool"]["gateway"]["compiled"]
    # All in one call: only so do modules call each other directly.
    compiled = mypycify(modules, opt_level="2", debug_level="0", multi_file=True)
    compiled.append(Extension("gateway.net._syscalls", ["gateway/net/_syscalls.c"]))
    for extension in compiled:
        extension.extra_compile_args += COMPILE + profile
        extension.extra_link_args += LINK + profile
    return compiled


def asked_profile() -> list[str]:
    """Return what the environment asks for of ``PROFILE``; nothing where the compiler is another."""
    asked = os.environ.get("GATEWAY_PROFILE", "")
    if asked not in PROFILE:
        sys.exit(f"GATEWAY_PROFILE is '{asked}', and can be 'quick', 'count', 'heed' or empty")
    return PROFILE[asked] if is_gcc() else []


def is_gcc() -> bool:
    """Tell whether the compiler keeps what it counted as GCC does; others are not asked to."""
    said = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=False).stdout
    return "Free Software Foundation" in said


def compiler() -> str:
    """Return the command that Python's extensions are compiled with."""
    return shlex.split(sysconfig.get_config_var("CC") or "cc")[0]


def require_compiler() -> None:
    """End with a word on what is missing, if the machine cannot compile for this Python."""
    if shutil.which(compiler()) is None:
        sys.exit(f"GATEWAY_COMPILE=1 needs a C compiler, and there is no {compiler()}: apt-get install gcc")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        sys.exit("GATEWAY_COMPILE=1 needs the headers of Python: apt-get install python3-dev")


setup(ext_modules=extensions())
