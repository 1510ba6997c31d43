"""Builds the packages; with ``GATEWAY_COMPILE=1`` the hot modules are compiled to machine code.

``pyproject.toml`` lists those modules (``tool.gateway.compiled``) and contains all other metadata. See
docs/adr/0008-compiled-wheels.md and 0038-packages.md.

This file runs with older versions of Python, too, so that pip can say in one line which one is required.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

#: Bypass the PLT: a small message makes some 100 calls, so call overhead costs as much as the work.
COMPILE = ["-O2", "-fno-plt", "-fno-semantic-interposition"]
LINK = ["-Wl,-Bsymbolic"] if sys.platform == "linux" else []

#: The modules in C (docs/adr/0013-system-calls-in-c.md); each has a counterpart in Python.
HANDWRITTEN = ["gateway.net._syscalls", "gateway.columnar.encoding._rows"]

#: The C files that are compiled at a time.
JOBS = int(os.environ.get("GATEWAY_JOBS") or os.cpu_count() or 1)

#: By ``GATEWAY_PROFILE``: ``count`` instruments the build, ``heed`` optimises with the counts of a trial run, so that
#: hot code is contiguous. ``make wheel`` builds both; code that the trial run did not reach is compiled normally.
#: ``quick`` compiles in a third of the time, for tests, without optimisation; its behaviour is the same. It omits all
#: warnings: that about indentation alone takes minutes for one C file of all modules.
PROFILE = {
    "": [],
    "quick": ["-O0", "-w", "-Wno-misleading-indentation"],
    "count": ["-fprofile-generate"],
    "heed": ["-fprofile-use", "-fprofile-partial-training", "-Wno-missing-profile", "-Wno-coverage-mismatch"],
}


def extensions() -> list[Extension]:
    """Return the listed modules compiled to C and the handwritten extensions; none unless requested."""
    if os.environ.get("GATEWAY_COMPILE") != "1":
        return []
    require_compiler()
    import tomllib

    profile = asked_profile()
    try:
        from mypyc.build import mypycify
    except ImportError:
        sys.exit("GATEWAY_COMPILE=1 needs mypy: pip install 'mypy[mypyc]'")
    with open("pyproject.toml", "rb") as file:
        modules = tomllib.load(file)["tool"]["gateway"]["compiled"]
    # One mypyc call for all modules, because only then do they call each other directly. A C file for each module is
    # compiled in parallel and in little memory; one for all of them in less processor time, as headers are read once.
    quick = os.environ.get("GATEWAY_PROFILE") == "quick"
    compiled = mypycify(modules, opt_level="2", debug_level="0", multi_file=not quick)
    for module in HANDWRITTEN:
        compiled.append(Extension(module, [f"{module.replace('.', '/')}.c"]))
    for extension in compiled:
        # Not in place: the extensions of mypyc have one list in common.
        extension.extra_compile_args = [*extension.extra_compile_args, *COMPILE, *profile]
        extension.extra_link_args = [*extension.extra_link_args, *LINK, *profile]
    return compiled


def asked_profile() -> list[str]:
    """Return the compiler options of the requested profile; none unless the compiler is GCC."""
    asked = os.environ.get("GATEWAY_PROFILE", "")
    if asked not in PROFILE:
        sys.exit(f"GATEWAY_PROFILE is '{asked}'; it must be 'quick', 'count', 'heed' or empty")
    return PROFILE[asked] if is_gcc() else []


def is_gcc() -> bool:
    """Return whether the compiler is GCC, whose profile format is needed."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=False).stdout
    return "Free Software Foundation" in version


def compiler() -> str:
    """Return the compiler command for Python's extensions."""
    return shlex.split(sysconfig.get_config_var("CC") or "cc")[0]


def require_compiler() -> None:
    """Exit with a message if the compiler or Python's headers are missing."""
    if shutil.which(compiler()) is None:
        sys.exit(f"GATEWAY_COMPILE=1 needs a C compiler, but {compiler()} is missing: apt-get install gcc")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        sys.exit("GATEWAY_COMPILE=1 needs the headers of Python: apt-get install python3-dev")


class ParallelBuild(build_ext):
    """Compiles the C files of an extension in parallel; setuptools compiles one after the other."""

    def build_extensions(self) -> None:
        """Build all extensions."""
        compile_files = self.compiler.compile

        def compile_in_parallel(sources: list[str], *arguments: Any, **options: Any) -> list[str]:
            largest_first = sorted(sources, key=lambda source: -os.path.getsize(source))
            with ThreadPoolExecutor(JOBS) as pool:
                objects = pool.map(lambda source: compile_files([source], *arguments, **options), largest_first)
                compiled = dict(zip(largest_first, objects, strict=True))
            return [path for source in sources for path in compiled[source]]

        self.compiler.compile = compile_in_parallel
        super().build_extensions()


setup(ext_modules=extensions(), cmdclass={"build_ext": ParallelBuild})
