"""Requests that schemathesis generates from the OpenAPI document, against a gateway started for these tests.

No request may cause an internal error, and each answer has the status, the type and the schema of the document.
"""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from schemathesis import HookContext, openapi
from schemathesis.checks import CheckContext
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateway.management.openapi.document import document
from gateway.management.resources.table import ROUTES
from tests.interop.gateways import ON_A_CLUSTER, gateway_at
from tests.management_client import put

LOGIN: Final = {"Authorization": f"Basic {b64encode(b'guest:guest').decode()}"}

#: Streams without an end, and requests that end or hinder the broker itself. In a cluster some end connections.
ENDING: Final = "|cluster/leader|cluster/nodes/.*" if ON_A_CLUSTER else ""
LEFT_OUT: Final = rf"^/api/(log/stream|events/stream|stop|maintenance.*{ENDING})$"

EXAMPLES: Final = 4

schema = openapi.from_dict(document(ROUTES))


#: Names of entities that exist at the start; generated requests have them in half of their paths.
NAME: Final = "orders"
KNOWN: Final = {"vhost": "/", "name": NAME, "user": NAME, "source": NAME, "destination": NAME, "component": "shovel"}

ENTITIES: Final = [
    ("vhosts/orders", {}),
    ("users/orders", {"password": "orders", "tags": "management"}),
    ("permissions/%2F/orders", {"configure": ".*", "write": ".*", "read": ".*"}),
    ("exchanges/%2F/orders", {"type": "topic"}),
    ("queues/%2F/orders", {"durable": True, "arguments": {"x-queue-type": "quorum"}}),
    ("policies/%2F/orders", {"pattern": "^orders$", "definition": {"max-length": 100}}),
    ("operator-policies/%2F/orders", {"pattern": "^orders$", "definition": {"max-length": 50}}),
    ("global-parameters/orders", {"value": {"a": 1}}),
    (
        "parameters/shovel/%2F/orders",
        {"value": {"src-uri": "amqp:///%2F", "src-queue": "a", "dest-uri": "amqp:///%2F", "dest-queue": "b"}},
    ),
]


@schema.hook
def map_path_parameters(context: HookContext, path_parameters: dict[str, str] | None) -> dict[str, str] | None:
    """Replace half of the generated names."""
    if path_parameters is None:
        return None
    return {name: KNOWN[name] if name in KNOWN and len(value) % 2 else value for name, value in path_parameters.items()}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    gateway = gateway_at(tmp_path_factory.mktemp("described")).start()
    for path, fields in ENTITIES:
        put(gateway, path, fields)
    host, port = gateway.addresses["management"]
    yield f"http://{host}:{port}"
    assert "Traceback" not in gateway.log
    assert gateway.stop() == 0


def no_internal_error(ctx: CheckContext, response: Response, case: Any) -> None:
    """Refuse status 500; 503 is the answer of a failed check, and of a change that one node refuses."""
    assert response.status_code != 500, response.text


CHECKS: Final = [
    no_internal_error, content_type_conformance, response_schema_conformance, status_code_conformance,
]  # fmt: skip


@schema.exclude(path_regex=LEFT_OUT).parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.generate],
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_the_document_says(case: Any, url: str) -> None:
    response = case.call(base_url=url, headers=LOGIN, timeout=20)
    case.validate_response(response, checks=CHECKS)
