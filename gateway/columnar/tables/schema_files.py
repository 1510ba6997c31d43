"""The files of a directory that describe the bodies of typed tables. The suffix of a name tells the language.

| File | Language |
|---|---|
| ``TABLE.json`` | JSON Schema |
| ``TABLE.avsc`` | Avro |
| ``TABLE.binpb``, ``TABLE.MESSAGE.binpb`` | Protobuf, as a descriptor set |

This module does not need Arrow, Iceberg or the libraries of the languages.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, DEAD_LETTER_TABLE, TRACE_TABLE
from gateway.kernel.errors import ConfigurationError

JSON_SCHEMA: Final = "json-schema"
AVRO: Final = "avro"
PROTOBUF: Final = "protobuf"
"""The languages, which are also the names of extras."""

#: Suffix to language, and the package that the language needs.
_LANGUAGES: Final = {
    ".json": (JSON_SCHEMA, "jsonschema_rs"),
    ".avsc": (AVRO, "fastavro"),
    ".binpb": (PROTOBUF, "google.protobuf"),
}

_TABLE: Final = re.compile(r"[a-z][a-z0-9_]{0,99}")

#: The largest file that is read, in bytes: it is part of each request to the worker.
_LARGEST: Final = 4 * 1024 * 1024

_RESERVED: Final = (ARCHIVE_TABLE, TRACE_TABLE, DEAD_LETTER_TABLE)


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """The content of a schema file. ``message`` is the full name of a Protobuf message, or ``""``."""

    path: str
    table: str
    language: str
    message: str
    content: bytes

    def as_head(self) -> dict[str, Any]:
        """Return the file as JSON for a request to the worker."""
        return {
            "path": self.path,
            "table": self.table,
            "language": self.language,
            "message": self.message,
            "content": b64encode(self.content).decode(),
        }

    @classmethod
    def from_head(cls, head: Mapping[str, Any]) -> Self:
        """Return the file in a request."""
        return cls(**{**head, "content": b64decode(head["content"])})


def schema_files(directory: Path) -> dict[str, SchemaFile]:
    """Return the files of a directory by table. Names that begin with a dot are skipped.

    :raises ConfigurationError: with a line for each file that cannot be used.
    """
    found: dict[str, SchemaFile] = {}
    problems: list[str] = []
    for path in sorted(directory.iterdir()):
        if path.name.startswith("."):
            continue
        try:
            file = _read(path)
            if file.table in found:
                raise ConfigurationError(f"the table {file.table} has another schema, {found[file.table].path}")
            found[file.table] = file
        except ConfigurationError as error:
            problems.append(f"{path}: {error}")
    if problems:
        raise ConfigurationError("\n".join(problems))
    return found


def _read(path: Path) -> SchemaFile:
    if path.suffix not in _LANGUAGES or not path.is_file():
        raise ConfigurationError("must be a file TABLE.json (JSON Schema), TABLE.avsc (Avro) or TABLE.binpb (Protobuf)")
    language, package = _LANGUAGES[path.suffix]
    table, _, message = path.stem.partition(".")
    if not _TABLE.fullmatch(table) or table in _RESERVED:
        raise ConfigurationError(f"{table!r} is not the name of a typed table: a small letter, then a-z, 0-9 and _")
    if message and language != PROTOBUF:
        raise ConfigurationError(f"the name must have one dot, as {table}{path.suffix}")
    if not _is_installed(package):
        raise ConfigurationError(f"needs a library: pip install 'gateway-broker[{language}]'")
    if path.stat().st_size > _LARGEST:
        raise ConfigurationError("is larger than 4 MiB")
    return SchemaFile(str(path), table, language, message, path.read_bytes())


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False


def typed_tables(directory: Path | None) -> Iterator[str]:
    """Yield the names of the typed tables of a directory of schemas, without a check of the files."""
    for path in sorted(directory.iterdir()) if directory is not None and directory.is_dir() else ():
        table = path.stem.partition(".")[0]
        if path.suffix in _LANGUAGES and _TABLE.fullmatch(table):
            yield table
