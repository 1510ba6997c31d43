"""Finds the decoders in the sources, so that each has a target.

A decoder is a public function or method whose first parameter is ``bytes`` and whose name does not say that it writes
or keeps them; or one whose name begins with a verb of decoding, and which takes bytes or, as the first parameter, text
or an object. Modules that call a parser of the standard library hold one as well.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import CodeType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]

#: The sources, and the part of a path that is not in the name of a module.
_SOURCES: Final = (("gateway", ""), ("protocols", "protocols/"), ("storage", "storage/"), ("plugins", "plugins/"))

_VERB: Final = re.compile(
    r"(decode|parse|scan|read|load|loads|feed|unescape|unpack|split|convert)(_|$)|compile_pattern"
)
_BYTES: Final = re.compile(r"\b(bytes|bytearray|memoryview)\b")
_TEXTS: Final = frozenset({"str", "object"})

#: Verbs of functions that take bytes to write or to keep them.
_NO_VERB: Final = re.compile(r"(write|send|put|put_in|pop|delete|add|set|create|open|encoded|sized)(_|$|[A-Z])")

#: What tests use and the broker does not.
_TOOLS: Final = ("gateway/testing/", "gateway/simulation/")

#: Calls of parsers in the standard library.
_PARSERS: Final = re.compile(
    r"\b(json\.loads?|tomllib\.loads?|b64decode|base64\.b64decode|urlsplit|parse_qsl|raw_decode"
    r"|[\w.]+\.unpack(_from)?|FromString|MergeFromString)\b"
)


@cache
def decoders() -> set[str]:
    """Return the decoders in the sources, as ``module:name``."""
    return {f"{module}:{name}" for module, tree, _ in _modules() for name in _named(tree, ())}


@cache
def modules_with_parsers() -> set[str]:
    """Return the modules that call a parser of the standard library."""
    return {module for module, _, source in _modules() if _PARSERS.search(_code(source))}


def code_of(decoder: str) -> CodeType:
    """Return the compiled code of ``module:name``. :raises AttributeError: if there is none."""
    module, _, path = decoder.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = found.__dict__[name] if isinstance(found, type) else getattr(found, name)
    found = found.fget if isinstance(found, property) else unwrap(getattr(found, "__func__", found))
    code: CodeType = found.__code__
    return code


def _modules() -> Iterator[tuple[str, ast.Module, str]]:
    for folder, prefix in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            inside = path.relative_to(ROOT).as_posix().removeprefix(prefix)
            if not inside.startswith(_TOOLS):
                source = path.read_text(encoding="utf-8")
                yield inside.removesuffix(".py").replace("/", "."), ast.parse(source), source


def _code(source: str) -> str:
    """Return a source without comments."""
    return re.sub(r"(?m)^\s*#.*$", "", source)


def _named(node: ast.AST, path: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from _named(child, (*path, child.name))
        elif isinstance(child, ast.FunctionDef) and not child.name.startswith("_") and _decodes(child):
            yield ".".join((*path, child.name))


def _decodes(function: ast.FunctionDef) -> bool:
    given = [each for each in (*function.args.posonlyargs, *function.args.args) if each.arg not in ("self", "cls")]
    if not given or given[0].annotation is None:
        return False
    annotations = [ast.unparse(each.annotation) for each in given if each.annotation is not None]
    if _BYTES.search(annotations[0]):
        return not _NO_VERB.match(function.name)
    is_named = bool(_VERB.match(function.name))
    return is_named and (annotations[0] in _TEXTS or any(_BYTES.search(each) for each in annotations))
