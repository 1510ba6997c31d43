"""``gateway check``: checks the settings, plugins and definitions without starting the broker."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.archive.schemas import check_schemas
from gateway.cli.options import configuration_options, settings_from
from gateway.config import Settings
from gateway.config.writing import effective
from gateway.definitions import read_definitions
from gateway.kernel.errors import ConfigurationError, StorageError
from gateway.kernel.messages.message import Properties, Value

if TYPE_CHECKING:
    from gateway.kernel.journal.records.entity import Entity
    from gateway.kernel.journal.records.topology import ExchangeRecord
    from gateway.plugins.registry import PluginRegistry, PluginView


@click.command()
@configuration_options
def check(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> int:
    """Check the settings, the plugins and the definitions, and print the effective settings as TOML."""
    settings = settings_from(config, data, overrides)
    registry = check_plugins(settings)
    check_schemas(settings)
    if settings.load_definitions is not None:
        read_definitions(settings.load_definitions)
    click.echo(effective(settings, registry.secret_settings), nl=False)
    return 0


def check_plugins(settings: Settings) -> "PluginRegistry":
    """Load every plugin, call its hooks for each virtual host in the settings or in the store, and return them.

    Exchanges in the store need their types. The store is read if possible; the broker may be running.

    :raises ConfigurationError: with one line for each plugin that is broken, is missing, or refuses its settings.
    """
    from gateway.kernel.journal.records.topology import ExchangeRecord, VhostRecord
    from gateway.plugins.enabling import enabled_plugins
    from gateway.plugins.registry import load_plugins  # imported here because plugins are slow to import

    registry = load_plugins(settings.plugins_dir)
    stored = _stored(settings)
    recorded = {entity.name: entity.plugins for entity in stored if isinstance(entity, VhostRecord)}
    enabled: dict[str, dict[str, Value]] = {}
    for name in {settings.default_vhost: None, **settings.vhosts, **recorded}:
        configured = settings.vhosts.get(name)
        enabled[name] = enabled_plugins(configured.plugins if configured is not None else {}, recorded.get(name, {}))
    views = {name: registry.view(name, plugins) for name, plugins in enabled.items()}
    for name, view in views.items():
        _call_hooks(name, view)
    problems = [
        line for entity in stored if isinstance(entity, ExchangeRecord) for line in _missing_type(entity, views)
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))
    return registry


class _NullVhost:
    """A virtual host for creating the objects of plugins in a check."""

    def __init__(self, name: str, node: str) -> None:
        self.name = name
        self.node = node

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Discard the message."""

    def publish_to_queue(
        self, queue: str, exchange: str, routing_key: str, properties: Properties, body: bytes
    ) -> bool:
        """Discard the message: there is no queue."""
        return False

    def close_connections(self, user: str, reason: str) -> None:
        """Close nothing."""

    def provide_exchange(self, name: str) -> None:
        """Create nothing."""

    def is_bound(self, exchange: str) -> bool:
        """Return that nothing is bound."""
        return False


def _call_hooks(name: str, view: "PluginView") -> None:
    """Call every hook that the start calls. :raises ConfigurationError: if a plugin fails."""
    from gateway.kernel.broker.directory import Directory
    from gateway.patterns import compile_pattern

    directory = Directory(lambda change: None, compile_pattern)
    view.authenticators(directory)
    view.authentication_methods(directory)
    view.authorizers(directory)
    scope = _NullVhost(name, "gateway@check")
    view.tracers(scope)
    view.interceptors(scope)
    view.event_listeners(scope)
    view.metric_sources(scope)
    view.offer_services(scope)


def _stored(settings: Settings) -> "list[Entity]":
    """Return the stored entities other than messages; empty if there is no store or it cannot be read."""
    if settings.storage.engine != "lmdb":
        return []
    from gateway_lmdb.reading import entities_in  # imported here because other commands do not need the store

    try:
        return entities_in(settings.data)
    except StorageError as error:
        click.echo(f"gateway: the store is not checked: {error}", err=True)
        return []


def _missing_type(record: "ExchangeRecord", views: "Mapping[str, PluginView]") -> list[str]:
    """Return a line if the type of a stored exchange is missing or refuses its arguments."""
    from gateway.kernel.errors import Refused
    from gateway.kernel.features.interceptors import routing_type

    view = views.get(record.vhost)
    try:
        type = routing_type(record.type, record.arguments)
    except Refused as refusal:
        return [f"exchange '{record.name}' in vhost '{record.vhost}' would be inert: {refusal}"]
    if view is None or type in view.exchange_types:
        return []
    return [f"exchange '{record.name}' in vhost '{record.vhost}' would be inert: unknown exchange type '{type}'"]
