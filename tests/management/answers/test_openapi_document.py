"""The OpenAPI document: complete, valid and documented."""

import json
import re
from pathlib import Path

import pytest
from jsonschema_rs import validator_for
from schemathesis import openapi

from gateway.management.http.routes import Endpoint
from gateway.management.openapi import operations
from gateway.management.openapi.document import document
from gateway.management.openapi.objects import OBJECTS
from gateway.management.resources.table import ROUTES
from tests.management.console import Console

DOCS = Path(__file__).parents[3] / "docs" / "management.md"


def name_of(route: Endpoint) -> str:
    return f"{route.method} {route.path}"


def test_the_document_is_served_to_users_of_the_api(console: Console) -> None:
    answer = console.ask("GET", "/openapi.json")
    assert answer.status == 200
    assert answer.json == json.loads(json.dumps(document(ROUTES)))
    assert console.ask("GET", "/openapi.json", user=None).status == 401


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_every_route_is_in_the_document(route: Endpoint) -> None:
    path = "/api" + re.sub(r"<(?:path:)?(\w+)>", r"{\1}", route.path)
    operation = document([route])["paths"][path][route.method.lower()]
    assert operation["summary"]
    names = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
    assert names == re.findall(r"<(?:path:)?(\w+)>", route.path)


def test_operations_have_different_names() -> None:
    names = [operation["operationId"] for item in document(ROUTES)["paths"].values() for operation in item.values()]
    assert len(set(names)) == len(names)


def test_the_tables_have_rows_of_existing_routes_only() -> None:
    routes = {(route.method, route.path) for route in ROUTES}
    for table in (operations.ANSWERS, operations.BODIES, operations.QUERIES, operations.BODY_TYPES):
        assert set(table) <= routes


def test_every_object_is_used() -> None:
    text = json.dumps(document(ROUTES))
    assert [name for name in OBJECTS if f'"#/components/schemas/{name}"' not in text] == []


def test_the_document_is_valid() -> None:
    schema = openapi.from_dict(document(ROUTES))
    schema.validate()
    assert schema.statistic.operations.total == len(ROUTES)
    for each in OBJECTS.values():
        validator_for({**each, "components": {"schemas": OBJECTS}})


def documented_paths() -> set[str]:
    """Return the paths of the table; ``.../end`` has the beginning of some path before it in the same row."""
    found: set[str] = set()
    for row in DOCS.read_text(encoding="utf-8").splitlines():
        if not row.startswith("| `/"):
            continue
        paths: list[str] = []
        for word in re.findall(r"`((?:\.\.\.)?/[^`\s]*)`", row):
            path = re.sub(r"\{\w+\}", "{}", word)
            if path.startswith("..."):
                segments = [each.split("/") for each in paths]
                paths += ["/".join(each[:count]) + path[3:] for each in segments for count in range(1, len(each) + 1)]
            else:
                paths.append(path)
        found.update(paths)
    return found


PATHS = documented_paths()


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_every_route_is_in_the_documentation(route: Endpoint) -> None:
    assert re.sub(r"<(?:path:)?\w+>", "{}", route.path) in PATHS
