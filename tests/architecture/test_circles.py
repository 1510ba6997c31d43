"""No circles of imports: modules that import each other, directly or through others, type-only imports included."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SHELVES: Final = ("protocols", "storage", "plugins", "pipeline")


def module_files() -> dict[str, Path]:
    """Return the file of each module, by the name under which it is imported."""
    found = {}
    for top in ("gateway", *SHELVES):
        base = ROOT if top == "gateway" else ROOT / top
        for file in sorted((ROOT / top).rglob("*.py")):
            found[".".join(file.relative_to(base).with_suffix("").parts).removesuffix(".__init__")] = file
    return found


def imported_by(file: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Yield the modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def reachable(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the modules that each module imports, directly or through others."""
    found: dict[str, set[str]] = {}
    for module in imports:
        seen: set[str] = set()
        to_visit = list(imports[module])
        while to_visit:
            each = to_visit.pop()
            if each not in seen:
                seen.add(each)
                to_visit.extend(imports[each])
        found[module] = seen
    return found


def circles(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the largest sets of modules of which each imports all others, directly or through others."""
    reach = reachable(imports)
    return {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in imports
        if module in reach[module]
    }


def test_a_circle_of_two_and_one_of_three_are_found() -> None:
    imports = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}, "f": {"a"}}
    assert circles(imports) == {frozenset("ab"), frozenset("cde")}


def test_modules_do_not_import_each_other_in_circles() -> None:
    modules = module_files()
    imports = {name: {m for m in imported_by(file, modules) if m in modules} for name, file in modules.items()}
    assert circles(imports) == set()
