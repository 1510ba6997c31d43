"""Import rules that the contracts in pyproject.toml cannot express; test_checks.py runs those."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = sorted((ROOT / "gateway" / "kernel").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))


def imported_by(file: Path) -> Iterator[str]:
    """Yield the full name of every imported module of a file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import"
            assert node.module is not None
            yield node.module


#: Optional imports of kernel modules, for the compiler.
FOR_THE_COMPILER = {"compiling.py": {"mypy_extensions"}}


@pytest.mark.parametrize("file", KERNEL, ids=lambda file: file.name)
def test_the_kernel_imports_only_the_standard_library_and_itself(file: Path) -> None:
    others = {
        name
        for name in imported_by(file)
        if not name.startswith("gateway.kernel") and name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert others == FOR_THE_COMPILER.get(file.name, set())


@pytest.mark.parametrize("file", PLUGINS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_plugin_imports_only_the_public_api_of_the_gateway(file: Path) -> None:
    own_package = file.relative_to(ROOT / "plugins").parts[0]
    allowed = {"gateway.api", "gateway.hookspecs"}
    ours = {name for name in imported_by(file) if name.startswith("gateway") and not name.startswith(own_package)}
    assert ours <= allowed


def test_every_package_is_covered_by_the_import_contracts() -> None:
    contracts = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    folders = [ROOT / "protocols", ROOT / "storage", ROOT / "plugins"]
    packages = [init.parent.name for folder in folders for init in folder.glob("*/__init__.py")]
    assert packages
    assert [name for name in packages if f'    "{name}",\n' not in contracts] == []
