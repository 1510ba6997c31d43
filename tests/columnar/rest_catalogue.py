"""A REST catalogue of Iceberg as a child process: the protocol over HTTP, on tables that SQLite names.

``python -m tests.columnar.rest_catalogue PORT DIRECTORY``. While the file ``fault`` in the directory says ``before``,
a commit is answered with 503 and not made; while it says ``after``, it is made, and the connection ends without an
answer. A fault happens once.
"""

import json
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

BEFORE, AFTER = "before", "after"

#: The status and the name of each error in the protocol.
_ERRORS: Mapping[type[Exception], tuple[int, str]] = {
    NoSuchNamespaceError: (404, "NoSuchNamespaceException"),
    NoSuchTableError: (404, "NoSuchTableException"),
    NamespaceAlreadyExistsError: (409, "AlreadyExistsException"),
    TableAlreadyExistsError: (409, "AlreadyExistsException"),
    CommitFailedException: (409, "CommitFailedException"),
}


class _Unavailable(Exception):
    """The request is answered with 503."""


class _Lost(Exception):
    """The request is not answered."""


class _Handler(BaseHTTPRequestHandler):
    catalogue: ClassVar[SqlCatalog]
    fault: ClassVar[Path]

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing: a test prints what it needs."""

    def _serve(self, answer: Callable[[list[str]], Any]) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")][1:]
        try:
            status, found = 200, answer(parts)
        except _Lost:
            self.close_connection = True
            return
        except _Unavailable:
            status, found = 503, _error(503, "ServiceUnavailableException", "try again")
        except tuple(_ERRORS) as error:
            status, name = _ERRORS[type(error)]
            found = _error(status, name, str(error))
        body = b"" if found is None or self.command == "HEAD" else _encoded(found)
        self.send_response(204 if status == 200 and found is None else status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self._serve(self._found)

    def do_HEAD(self) -> None:
        self._serve(lambda parts: self._found(parts) and None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._serve(lambda parts: self._posted(parts, body))

    def do_DELETE(self) -> None:
        self._serve(lambda parts: self.catalogue.drop_table((parts[1], parts[3])))

    def _found(self, parts: list[str]) -> Any:
        match parts:
            case ["config"]:
                return {"defaults": {}, "overrides": {}}
            case ["namespaces", namespace]:
                return {"namespace": [namespace], "properties": self.catalogue.load_namespace_properties(namespace)}
            case ["namespaces", namespace, "tables"]:
                tables = self.catalogue.list_tables(namespace)
                return {"identifiers": [{"namespace": [namespace], "name": name} for _, name in tables]}
            case ["namespaces", namespace, "tables", name]:
                return _loaded(self.catalogue.load_table((namespace, name)))
        raise AssertionError(self.path)

    def _posted(self, parts: list[str], body: bytes) -> Any:
        match parts:
            case ["namespaces"]:
                [namespace] = _decoded(body)["namespace"]
                self.catalogue.create_namespace(namespace)
                return {"namespace": [namespace], "properties": {}}
            case ["namespaces", namespace, "tables"]:
                return self._created(namespace, CreateTableRequest.model_validate_json(body))
            case ["namespaces", namespace, "register"]:
                request = _decoded(body)
                return _loaded(
                    self.catalogue.register_table((namespace, request["name"]), request["metadata-location"])
                )
            case ["namespaces", _, "tables", _, "metrics"]:
                return None
            case ["namespaces", namespace, "tables", name]:
                identifier = {"namespace": [namespace], "name": name}  # a body need not have it
                request = {"identifier": identifier, **_decoded(body)}
                return self._committed(CommitTableRequest.model_validate(request))
        raise AssertionError(self.path)

    def _created(self, namespace: str, request: CreateTableRequest) -> Any:
        """Return the metadata of a table that the first commit creates."""
        assert request.stage_create
        if self.catalogue.table_exists((namespace, request.name)):
            raise TableAlreadyExistsError(request.name)
        metadata = new_table_metadata(
            location=request.location or "",
            schema=request.table_schema,
            partition_spec=request.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            sort_order=request.write_order or UNSORTED_SORT_ORDER,
            properties=request.properties,
        )
        return {"metadata": _decoded(metadata.model_dump_json().encode()), "config": {}}

    def _committed(self, request: CommitTableRequest) -> Any:
        fault = self.fault.read_text() if self.fault.exists() else ""
        if fault:
            self.fault.unlink()
        if fault == BEFORE:
            raise _Unavailable
        made = self.catalogue.commit_table(_Named(request), request.requirements, request.updates)  # type: ignore[arg-type]
        if fault == AFTER:
            raise _Lost
        return _decoded(made.model_dump_json().encode())


class _Named:
    """The name of a table, as a commit of the catalogue needs it."""

    def __init__(self, request: CommitTableRequest) -> None:
        identifier = request.identifier
        self._name = (*identifier.namespace.root, identifier.name)

    def name(self) -> tuple[str, ...]:
        return self._name


def _loaded(table: Table) -> Any:
    metadata = _decoded(table.metadata.model_dump_json().encode())
    return {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}


def _error(status: int, name: str, text: str) -> Any:
    return {"error": {"message": text, "type": name, "code": status}}


def _encoded(value: Any) -> bytes:

    return json.dumps(value).encode()


def _decoded(body: bytes) -> Any:

    return json.loads(body)


def main() -> None:
    """Serve until the process is killed."""
    port, directory = int(sys.argv[1]), Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    _Handler.catalogue = SqlCatalog("served", uri=f"sqlite:///{directory}/served.db", warehouse=str(directory))
    _Handler.fault = directory / "fault"
    HTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    main()
