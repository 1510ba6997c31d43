"""interceptor-rewrite: sets, renames and removes headers, on publish or on deliver."""

from collections.abc import Sequence
from typing import Literal

from gateway.api import (
    ConfigurationError,
    Decision,
    Interceptor,
    Message,
    Origin,
    PluginSettings,
    Value,
    hookimpl,
)


class RewriteRule(PluginSettings):
    """One rule: what happens to the headers of the messages of one exchange, or of all."""

    exchange: str | None = None
    """The exchange to which the messages are published; none for all exchanges. "" is the default exchange."""

    on: Literal["publish", "deliver"] = "publish"
    """Whether the stored message changes, or what consumers get."""

    set: dict[str, str | int | bool] = {}
    """Headers and their values."""

    rename: dict[str, str] = {}
    """Headers and their new names."""

    remove: list[str] = []
    """Headers that are removed."""


class RewriteSettings(PluginSettings):
    """The settings of ``interceptor-rewrite``."""

    rules: list[RewriteRule] = []
    """The rules, applied in order."""


class Rewrite(Interceptor):
    """Applies rules to the headers of messages."""

    decides_by_header = True

    def __init__(self, rules: Sequence[RewriteRule]) -> None:
        self._on_publish = [rule for rule in rules if rule.on == "publish"]
        named = {rule.exchange for rule in self._on_publish if rule.exchange is not None}
        self.exchanges = None if any(rule.exchange is None for rule in self._on_publish) else named
        self._on_deliver = [rule for rule in rules if rule.on == "deliver"]

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message after the rules for publishes."""
        for rule in self._on_publish:
            message = rewritten(message, rule)
        return message

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        """Return the message after the rules for deliveries."""
        for rule in self._on_deliver:
            message = rewritten(message, rule)
        return message


def rewritten(message: Message, rule: RewriteRule) -> Message:
    """Return the message after one rule: headers are renamed, then set, then removed."""
    if rule.exchange is not None and message.exchange != rule.exchange:
        return message
    there = message.headers
    renamed = {new: there[old] for old, new in rule.rename.items() if old in there}
    changed: dict[str, Value] = {**renamed, **rule.set}
    gone = [name for name in (*rule.rename, *rule.remove) if name in there and name not in changed]
    changed = {name: value for name, value in changed.items() if name not in rule.remove}
    return message.edited(changed, without=gone) if changed or gone else message


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the rules."""
    return RewriteSettings


@hookimpl
def gateway_interceptors(settings: RewriteSettings) -> Sequence[Interceptor]:
    """Offer the interceptor. :raises ConfigurationError: if there is no rule, or one that does nothing."""
    if not settings.rules:
        raise ConfigurationError("'rules' must have at least one rule")
    for number, rule in enumerate(settings.rules, 1):
        if not (rule.set or rule.rename or rule.remove):
            raise ConfigurationError(f"rule {number} needs 'set', 'rename' or 'remove'")
    return [Rewrite(settings.rules)]
