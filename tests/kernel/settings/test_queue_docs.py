"""The documentation describes every argument, policy key and death reason of a queue."""

from pathlib import Path

import pytest

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.settings.policy_checks import APPLY_TO, KEYS, OBSOLETE
from gateway.kernel.settings.queue_arguments import QUEUE_ARGUMENTS

DOCS = Path(__file__).parents[3] / "docs"
QUEUES = (DOCS / "queues.md").read_text(encoding="utf-8")
PAGES = ("queues.md", "queues-extras.md", "consumers.md", "streams.md")
EVERYTHING = "".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)


@pytest.mark.parametrize("name", sorted({*QUEUE_ARGUMENTS, *KEYS, *OBSOLETE}))
def test_an_argument_or_policy_key_is_described(name: str) -> None:
    assert f"`{name}" in EVERYTHING


@pytest.mark.parametrize("name", [*APPLY_TO, *(reason.value for reason in DeathReason)])
def test_an_apply_to_value_or_death_reason_is_described(name: str) -> None:
    assert f"`{name}`" in QUEUES
