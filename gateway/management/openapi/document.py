"""The OpenAPI document of the API, generated from its routes."""

import re
from collections.abc import Iterable
from typing import Any, Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.routes import Endpoint
from gateway.management.openapi.notation import Schema, fields, page_of, ref, schema
from gateway.management.openapi.objects import OBJECTS
from gateway.management.openapi.operations import (
    ANSWER_TYPES,
    ANSWERS,
    BODIES,
    BODY_TYPES,
    PAGING,
    QUERIES,
    STATISTICS,
)
from gateway.version import VERSION

_JSON: Final = "application/json"
_NAME: Final = re.compile(r"<(?:path:)?(\w+)>")

#: Objects with rates, whose samples a query may request.
_SAMPLED: Final = frozenset({"Overview", "Node", "Vhost", "Queue", "Exchange", "Channel", "Connection"})

#: Checks, whose failure is status 503 with a body of its own.
_CHECKS: Final = ("/health/checks/", "/healthchecks/")

_DESCRIPTION: Final = (
    "RabbitMQ's HTTP API and the gateway's additions. Names in paths are percent-encoded; the virtual host / is %2F, "
    "the default exchange amq.default. Errors have the fields error and reason. x-required-tag is the tag of a user "
    "that an operation needs; virtual hosts and permissions apply as well."
)


def document(routes: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the document of these routes, as OpenAPI 3.1 describes it."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        item = paths.setdefault("/api" + _NAME.sub(r"{\1}", route.path), {})
        item[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gateway", "version": VERSION, "description": _DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{"basic": []}, {"bearer": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": OBJECTS,
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "gateway_session"},
            },
        },
    }


def _operation(route: Endpoint) -> dict[str, Any]:
    key = route.method, route.path
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', route.path).rstrip('_')}",
        "summary": _summary(route),
        "tags": [route.path.split("/")[1]],
        "parameters": [*_path_parameters(route.path), *_query_parameters(key)],
        "responses": _responses(route),
    }
    if route.level is AccessLevel.PUBLIC:
        operation["security"] = []
    elif route.level is not AccessLevel.USER:
        operation["x-required-tag"] = route.level.name.lower()
    if key in BODIES or key in BODY_TYPES or route.method in ("PUT", "POST"):
        body = BODIES.get(key, {} if key in BODY_TYPES else {"type": "object"})
        operation["requestBody"] = {
            "required": bool(body.get("required")),
            "content": {BODY_TYPES.get(key, _JSON): {"schema": body}},
        }
    return operation


def _summary(route: Endpoint) -> str:
    return (route.resource.__doc__ or "").strip().partition("\n")[0].replace("``", "").rstrip(".")


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "enum": ["q", "e"]} if name == "kind" else {"type": "string", "minLength": 1},
        }
        for name in _NAME.findall(path)
    ]


def _query_parameters(key: tuple[str, str]) -> list[dict[str, Any]]:
    answer = ANSWERS.get(key, "")
    words = QUERIES.get(key, "")
    if answer.startswith("+"):
        words += f" {PAGING}"
    elif answer in OBJECTS and key[0] == "GET":
        words += " columns:s"
    if answer.strip("+[]") in _SAMPLED and key[0] == "GET":
        words += f" {STATISTICS}"
    properties = fields(words)["properties"]
    return [{"name": name, "in": "query", "schema": kind} for name, kind in properties.items()]


def _responses(route: Endpoint) -> dict[str, Any]:
    key = route.method, route.path
    responses: dict[str, Any] = {"default": _with_json("An error", ref("Error"))}
    if route.path.startswith(_CHECKS):
        responses["503"] = _with_json("The check failed", ref("Check"))
    if route.method == "GET" or key in ANSWERS:
        return {"200": _with_json("The answer", _answer(key), ANSWER_TYPES.get(key, _JSON)), **responses}
    done = {"description": "Done; answered once the change is durable"}
    if route.method == "DELETE":
        return {"204": done, **responses}
    created = {"description": "Created", "headers": {"Location": {"schema": {"type": "string"}}}}
    started = {"description": "Started; another request shows the progress"}
    return {"200": _with_json("The result", {}), "201": created, "202": started, "204": done, **responses}


def _with_json(description: str, content: Schema, content_type: str = _JSON) -> dict[str, Any]:
    return {"description": description, "content": {content_type: {"schema": content}}}


def _answer(key: tuple[str, str]) -> Schema:
    name = ANSWERS.get(key)
    if name is None:
        return {"type": "string"} if key in ANSWER_TYPES else {}
    return page_of(schema(name[1:])) if name.startswith("+") else schema(name)
