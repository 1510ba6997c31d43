"""The requests of tools, recorded through their whole lists of verbs and tests, are answered as RabbitMQ answers them.

A recording has the requests in their order: method, path, body, status, and the keys of RabbitMQ's answer (of the first
entry of a list) the first time that they occur. What only Erlang has is left out: ``io_*``, ``mnesia_*``, ``ra_*``, ...
"""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.bridges.upstreams import UPSTREAM, UPSTREAM_SET, require_valid_upstream, require_valid_upstream_set
from tests.management.console import Console

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDINGS = ["rabbitmqadmin-2.35.0.json", "rabbit-hole-2.12.0.json"]


def keys_of(answer: Any) -> set[str]:
    """Return the keys of an object, or of the first entry of a list or page."""
    if isinstance(answer, dict) and "items" in answer and "page" in answer:
        answer = answer["items"]
    if isinstance(answer, list):
        answer = answer[0] if answer else {}
    return set(answer) if isinstance(answer, dict) else set()


@pytest.mark.parametrize("recording", RECORDINGS)
def test_each_request_is_answered_with_the_status_and_the_keys_of_rabbitmq(recording: str) -> None:
    console = Console()
    broker = console.gateway.broker
    broker.parameters.components |= {
        "shovel": lambda record: None,
        UPSTREAM: require_valid_upstream,
        UPSTREAM_SET: require_valid_upstream_set,
    }
    requests = json.loads((FIXTURES / recording).read_text(encoding="utf-8"))["requests"]
    wrong: list[str] = []
    for method, path, body, status, *keys in requests:
        answer = console.ask(method, path.replace("NODE", broker.node.replace("@", "%40")), body)
        if answer.status != status:
            wrong.append(f"{method} {path}: {answer.status} instead of {status}: {answer.content[:200]!r}")
        elif missing := set(" ".join(keys).split()) - keys_of(answer.json if keys else {}):
            wrong.append(f"{method} {path}: without {', '.join(sorted(missing))}")
    assert wrong == []
