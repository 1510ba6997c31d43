"""Each promise of the history can be seen to be broken."""

from collections.abc import Callable

import pytest

from gateway.simulation.findings import Finding, Findings
from gateway.simulation.history import MessageHistory, MessagePlace
from gateway.simulation.publishes import Fate
from gateway.simulation.world.world import World

Story = Callable[[MessageHistory], None]


def never_published(history: MessageHistory) -> None:
    history.received("queue", "reader", "stranger:1", is_redelivered=False)


def elsewhere(history: MessageHistory) -> None:
    history.received("other", "reader", history.publish("p", ["queue"]), is_redelivered=False)


def rolled_back(history: MessageHistory) -> None:
    body = history.publish("p", ["queue"])
    history.decided(body, Fate.ROLLED_BACK)
    history.received("queue", "reader", body, is_redelivered=False)


def refused(history: MessageHistory) -> None:
    body = history.publish("p", ["queue"])
    history.decided(body, Fate.REFUSED)
    history.received("queue", "reader", body, is_redelivered=False)


def acknowledged(history: MessageHistory) -> None:
    body = history.publish("p", ["queue"])
    history.received("queue", "reader", body, is_redelivered=False)
    history.settled("queue", [body])
    history.received("queue", "reader", body, is_redelivered=True)


def not_marked(history: MessageHistory) -> None:
    body = history.publish("p", ["queue"])
    for reader in ("one", "two"):
        history.received("queue", reader, body, is_redelivered=False)


def out_of_order(history: MessageHistory) -> None:
    for body in reversed([history.publish("p", ["queue"]) for _ in range(2)]):
        history.received("queue", "reader", body, is_redelivered=False)


def lost(history: MessageHistory) -> None:
    history.decided(history.publish("p", ["queue"]), Fate.CONFIRMED)
    history.check_losses(has_restarted=True)


def partial(history: MessageHistory) -> None:
    body, _ = (history.publish("p", ["queue"], group=1) for _ in range(2))
    history.received("queue", "reader", body, is_redelivered=False, removes=True)
    history.check_transactions()


@pytest.mark.parametrize(
    ("story", "rule"),
    [
        (never_published, "only what was published is delivered"),
        (elsewhere, "a message goes where it is routed"),
        (rolled_back, "a transaction that was rolled back has no effect"),
        (refused, "a refused message is not delivered"),
        (acknowledged, "an acknowledged message does not come again"),
        (not_marked, "a second delivery is marked as one"),
        (out_of_order, "messages of a publisher come in its order"),
        (lost, "a confirmed message is not lost"),
        (partial, "a transaction is whole"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_broken_promise_is_a_finding(story: Story, rule: str) -> None:
    assert [finding.rule for finding in findings_of(story)] == [rule]


def kept(history: MessageHistory) -> None:
    bodies = [history.publish("p", ["queue"], group=1) for _ in range(3)]
    for body in bodies:
        history.received("queue", "reader", body, is_redelivered=False)
        history.consumed("queue", body)
    history.settled("queue", bodies)
    history.check_losses(has_restarted=True)
    history.check_transactions()


def killed(history: MessageHistory) -> None:
    body = history.publish("p", ["queue"], is_durable=False)
    history.decided(body, Fate.CONFIRMED)
    history.check_losses(has_restarted=True)


@pytest.mark.parametrize("story", [kept, killed])
def test_kept_promises_are_no_finding(story: Story) -> None:
    assert findings_of(story) == []


def findings_of(story: Story) -> list[Finding]:
    findings = Findings(World(0))
    history = MessageHistory(findings)
    for name in ("queue", "other"):
        history.add_place(MessagePlace(name))
    story(history)
    return findings.found
