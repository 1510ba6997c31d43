"""Imports one module of the broker with a changed source."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

from tests.simulation.mutations.table import Mutation


class MutatedLoader(SourceLoader):
    """Loads a module from its source with one piece replaced."""

    def __init__(self, path: str, mutation: Mutation) -> None:
        self._path = path
        self._mutation = mutation

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str | bytes) -> bytes:
        if str(path) != self._path:
            raise OSError("the bytecode of the original is not used")
        return mutated(Path(self._path).read_text(), self._mutation).encode()


class MutatedFinder(MetaPathFinder):
    """Finds the mutated module before all others."""

    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutation.module:
            return None
        original = PathFinder.find_spec(fullname, path)
        assert original is not None
        assert original.origin is not None
        return spec_from_loader(fullname, MutatedLoader(original.origin, self._mutation), origin=original.origin)


def mutated(source: str, mutation: Mutation) -> str:
    """Return a source with the piece replaced, which must occur in it exactly once."""
    assert source.count(mutation.old) == 1, f"{mutation.name}: the piece occurs {source.count(mutation.old)} times"
    return source.replace(mutation.old, mutation.new)


def install(mutation: Mutation) -> None:
    """Let later imports find the mutated module."""
    assert mutation.module not in sys.modules, f"{mutation.module} is imported already"
    sys.meta_path.insert(0, MutatedFinder(mutation))
