"""A REST catalogue of Iceberg with the requests that an archive needs, on a catalogue in SQLite, in a thread."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from types import SimpleNamespace
from typing import Any

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response


class RestCatalogue:
    """The application. The answers of the next ``lost_answers`` commits are errors, although they are committed."""

    def __init__(self, uri: str, warehouse: str) -> None:
        self.catalogue = SqlCatalog("rest", uri=uri, warehouse=warehouse)
        self.lost_answers = 0

    @Request.application
    def __call__(self, request: Request) -> Response:
        words = request.path.strip("/").split("/")[1:]
        body = json.loads(request.data or b"{}")
        match request.method, words:
            case "GET", ["config"]:
                return _json({"defaults": {}, "overrides": {}})
            case "POST", ["namespaces"]:
                self.catalogue.create_namespace_if_not_exists(tuple(body["namespace"]))
                return _json({"namespace": body["namespace"], "properties": {}})
            case "POST", ["namespaces", _, "tables"]:
                return _described(_new(CreateTableRequest.model_validate(body)), None)
            case "GET", ["namespaces", namespace, "tables", name]:
                return self._loaded(namespace, name)
            case "POST", ["namespaces", namespace, "tables", name]:
                return self._committed(namespace, name, body)
        return _error(404, "NoSuchEndpointException", request.path)

    def _loaded(self, namespace: str, name: str) -> Response:
        try:
            table = self.catalogue.load_table((namespace, name))
        except NoSuchTableError as error:
            return _error(404, "NoSuchTableException", str(error))
        return _described(table.metadata, table.metadata_location)

    def _committed(self, namespace: str, name: str, body: Any) -> Response:
        request = CommitTableRequest.model_validate({"identifier": {"namespace": [namespace], "name": name}, **body})
        table: Any = SimpleNamespace(name=lambda: (namespace, name))
        try:
            answer = self.catalogue.commit_table(table, request.requirements, request.updates)
        except CommitFailedException as error:
            return _error(409, "CommitFailedException", str(error))
        if self.lost_answers:
            self.lost_answers -= 1
            return _error(504, "CommitStateUnknownException", "no answer")
        return _described(answer.metadata, answer.metadata_location)


def _new(request: CreateTableRequest) -> TableMetadata:
    return new_table_metadata(
        request.table_schema,
        request.partition_spec or UNPARTITIONED_PARTITION_SPEC,
        request.write_order or UNSORTED_SORT_ORDER,
        str(request.location),
        request.properties,
    )


def _described(metadata: TableMetadata, location: str | None) -> Response:
    described = {"metadata": json.loads(metadata.model_dump_json()), "config": {}}
    return _json(described if location is None else {**described, "metadata-location": location})


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, content_type="application/json")


def _error(status: int, kind: str, text: str) -> Response:
    return _json({"error": {"message": text, "type": kind, "code": status}}, status)


@contextmanager
def served(catalogue: RestCatalogue) -> Iterator[str]:
    """Serve a catalogue; return its URL."""
    server = make_server("127.0.0.1", 0, catalogue)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
