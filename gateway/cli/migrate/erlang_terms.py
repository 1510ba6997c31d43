"""Reads the Erlang terms of ``advanced.config``: lists, tuples, atoms, strings, binaries, numbers and maps."""

import re
from dataclasses import dataclass
from typing import Any, Final

_SKIPPED: Final = re.compile(r"(?:\s+|%[^\n]*)*")
_ATOM: Final = re.compile(r"[a-z][A-Za-z0-9_@]*|'((?:[^'\\]|\\.)*)'")
_NUMBER: Final = re.compile(r"[0-9]+#[0-9a-zA-Z]+|[+-]?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?)?")
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "e": "\x1b", "0": "\0"}

#: Nested lists and tuples.
_MOST_LEVELS: Final = 50


class NotATerm(ValueError):
    """A text that is no Erlang term; the message has the line."""


@dataclass(frozen=True, slots=True)
class ErlangAtom:
    """An atom such as ``true``."""

    name: str

    def __str__(self) -> str:
        return self.name


def read_term(text: str) -> Any:
    """Return the term that a text consists of, without the full stop at its end.

    Strings and binaries become ``str``, tuples ``tuple``, lists and maps ``list`` (a map has pairs).

    :raises NotATerm: with the line.
    """
    reader = _Reader(text)
    term = reader.term(0)
    reader.take(".")
    reader.end()
    return term


def written(term: Any) -> str:
    """Return a term on one line, as Erlang writes it."""
    match term:
        case ErlangAtom():
            return term.name if re.fullmatch(r"[a-z]\w*", term.name) else f"'{term.name}'"
        case str():
            return '"' + term.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple():
            return "{" + ",".join(map(written, term)) + "}"
        case list():
            return "[" + ",".join(map(written, term)) + "]"
        case _:
            return str(term)


class _Reader:
    """A place in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def term(self, level: int) -> Any:
        if level > _MOST_LEVELS:
            raise self._error("it is nested too deeply")
        if self.take("["):
            return self._until("]", level)
        if self.take("{"):
            return tuple(self._until("}", level))
        if self.take("#{"):
            return self._until("}", level)
        if self.take("<<"):
            text = "" if self._text.startswith(">>", self._at) else self._strings()
            self._require(">>")
            return text
        if self._text.startswith('"', self._at):
            return self._strings()
        return self._atom_or_number()

    def take(self, mark: str) -> bool:
        """Skip a mark if it is next."""
        self._skip()
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def end(self) -> None:
        self._skip()
        if self._at < len(self._text):
            raise self._error("something follows the full stop")

    def _until(self, end: str, level: int) -> list[Any]:
        found: list[Any] = []
        if self.take(end):
            return found
        while True:
            item = self.term(level + 1)
            if self.take("=>"):
                item = (item, self.term(level + 1))
            found.append(item)
            if self.take(end):
                return found
            self._require(",")

    def _strings(self) -> str:
        """Read a string; adjacent ones are one, as in Erlang."""
        texts = []
        self._skip()
        while (found := _STRING.match(self._text, self._at)) is not None:
            self._at = found.end()
            texts.append(_unescaped(found[1]))
            self._skip()
            if self._text.startswith("/utf8", self._at):
                self._at += len("/utf8")
        if not texts:
            raise self._error("a string was expected")
        return "".join(texts)

    def _atom_or_number(self) -> Any:
        if (found := _ATOM.match(self._text, self._at)) is not None:
            self._at = found.end()
            return ErlangAtom(found[0] if found[1] is None else _unescaped(found[1]))
        if (found := _NUMBER.match(self._text, self._at)) is None:
            raise self._error("a term was expected")
        base, sharp, digits = found[0].partition("#")
        try:
            number = int(digits, int(base)) if sharp else float(base) if "." in base else int(base)
        except ValueError:  # a digit that the base does not have, or too many digits
            raise self._error("a number was expected") from None
        self._at = found.end()
        return number

    def _require(self, mark: str) -> None:
        if not self.take(mark):
            raise self._error(f"'{mark}' was expected")

    def _skip(self) -> None:
        found = _SKIPPED.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at

    def _error(self, reason: str) -> NotATerm:
        line = self._text.count("\n", 0, self._at) + 1
        near = self._text[self._at :].split("\n", 1)[0][:20]
        return NotATerm(f"line {line}: {reason}, not {near!r}" if near else f"line {line}: {reason}, not the end")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _CONTROLS.get(found[1], found[1]), text)
