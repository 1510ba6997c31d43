"""The plugin interface: every hook, the time of its call, and the use of its result.

These rules hold for all hooks:

* A hook is called while a virtual host starts, and returns *objects*. It is never called per message, connection or
  declaration; those call the objects.
* It is called again when an operator enables its plugin, replaces the plugin by another version or changes its
  settings. The new objects replace the former ones in one turn. A former object's method ``close`` is called if it has
  one, also when the plugin is disabled, the virtual host is deleted or the broker stops.
* A hook is called for the plugins that its virtual host enables, and for the built-in ones that are always enabled.
  Each plugin is called separately and gets its own ``settings``: the virtual host's table under the plugin's name.
* If the plugin implements ``gateway_settings_model``, ``settings`` is a validated instance of that model. Otherwise it
  is the table itself.
* The order is that of the virtual host's table; built-in plugins that the table does not name come first.
* Hooks and their objects are called on the kernel's thread and must not block.
* An implementation may omit parameters that it does not need, and must not give them defaults. With nothing to offer it
  returns an empty result, never ``None``.
* An exception disables the plugin in the virtual host; the log and ``gateway check`` report the plugin, its file and
  line. Settings that a model cannot check are refused with ``ConfigurationError`` and a message for the operator.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from pluggy import HookimplMarker, HookspecMarker
from pydantic import BaseModel

from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.features.plugin_feature import QueueFeatureType
from gateway.kernel.interception.interceptor import Interceptor
from gateway.kernel.messages.message import Properties, Value
from gateway.kernel.routing.exchange_type import ExchangeTypes
from gateway.kernel.vhosts.event_listeners import EventListener, ObservedVhost
from gateway.kernel.vhosts.metric_source import MetricSource
from gateway.plugins.services.ctl_verb import CtlVerb
from gateway.plugins.services.http_resource import HttpResource
from gateway.plugins.services.ui_panel import UiPanel

if TYPE_CHECKING:
    from gateway.access import AccessWrapper, AuthenticationMethod, Authenticator, Authorizer, PasswordCheck
    from gateway.kernel.broker.directory import Directory

PROJECT: Final = "gateway"
"""The project name for pluggy."""

Settings: TypeAlias = Mapping[str, Value] | BaseModel
"""The settings of a plugin: an instance of its model, or the table itself if it has none."""

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)


class TracedVhost(Protocol):
    """The virtual host as seen by a tracer, an interceptor or an HTTP resource.

    Its methods are called on the kernel's thread.
    """

    @property
    def name(self) -> str:
        """The name of the virtual host."""
        ...

    @property
    def node(self) -> str:
        """The name of the node it runs on."""
        ...

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Publish a message of the broker itself: transient, unconfirmed, dropped if no queue accepts it.

        No interceptor sees the publish. It is not traced but its deliveries are, so a tracer must ignore its own
        messages.
        """
        ...

    def publish_to_queue(
        self, queue: str, exchange: str, routing_key: str, properties: Properties, body: bytes
    ) -> bool:
        """Publish a message of the broker itself to one queue, as if the exchange had routed it there.

        Consumers see the exchange and the routing key; no exchange is asked. For answers to one client: the queues of
        an MQTT client are ``mqtt-subscription-IDqos0`` and ``...qos1``, and it gets only topics that it subscribed to.

        :returns: whether the queue exists and took the message.
        """
        ...

    def close_connections(self, user: str, reason: str) -> None:
        """Close the connections of a user to this virtual host, in later turns; the clients are sent the reason."""
        ...


# -- Settings ---------------------------------------------------------------------------------------------------------


@hookspec
def gateway_settings_model() -> type[BaseModel]:
    """Describe the settings of the plugin.

    Called when the settings of a virtual host are checked, before the other hooks of the plugin, and for descriptions
    of the plugin. Each plugin has its own model. Wrong settings are refused with the name of the plugin, the key and
    the allowed values, and the plugin is not used.

    :returns: a pydantic model, such as a subclass of ``gateway.api.PluginSettings``. An unknown key is an error unless
        the model allows extra keys. Its fields' descriptions are shown to the operator.
    """
    raise NotImplementedError


# -- Routing ----------------------------------------------------------------------------------------------------------


@hookspec
def gateway_exchange_types(vhost: str, settings: Settings) -> ExchangeTypes:
    """Offer exchange types to a virtual host.

    At the start of a virtual host it is called before any exchange is recovered. The mappings of all plugins are
    merged; the same name from two plugins stops the start with ``DuplicateExchangeType``.

    :param vhost: the name of the virtual host that is starting.
    :param settings: the plugin's own table in the virtual host's ``plugins``; empty for a built-in it does not name.
    :returns: exchange type names with factories. The factory is called with the declare arguments for each exchange
        that is declared or recovered, and may raise ``PreconditionFailed``. ``gateway.api.ExchangeType`` is the
        contract of its objects; ``gateway.testing.check_exchange_type`` tests them.
    """
    raise NotImplementedError


# -- Queues -----------------------------------------------------------------------------------------------------------


@hookspec
def gateway_queue_features(vhost: str, settings: Settings) -> Sequence[QueueFeatureType]:
    """Offer features to the queues of a virtual host: each has settings, which are queue arguments and policy keys.

    At the start of a virtual host it is called before any queue is recovered. The sequences of all plugins are joined
    in order; the same setting from two plugins stops the start with ``DuplicateQueueSetting``. A queue without such a
    setting is not affected. If a feature fails, the message goes on as without it.

    :param vhost: the name of the virtual host that is starting.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: feature types, possibly none: the settings with their checks, and a factory that is called for each queue
        with such a setting. ``gateway.api.QueueFeature`` is the contract of its objects;
        ``gateway.testing.check_queue_feature`` tests them.
    """
    raise NotImplementedError


# -- Access -----------------------------------------------------------------------------------------------------------


@hookspec
def gateway_authenticators(
    vhost: str, directory: "Directory", passwords: "PasswordCheck", settings: Settings
) -> "Sequence[Authenticator]":
    """Offer authenticators to a virtual host.

    The sequences of all plugins are joined in order; a login tries one after the other until one accepts the client.

    :param vhost: the name of the virtual host that is starting.
    :param directory: the users and permissions of the internal database, for reading.
    :param passwords: checks a password of such a user off the kernel's thread, in the same time for unknown users.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: authenticators, possibly none. ``gateway.api.Authenticator`` is their contract.
    """
    raise NotImplementedError


@hookspec
def gateway_authentication_methods(
    vhost: str, directory: "Directory", settings: Settings
) -> "Mapping[str, AuthenticationMethod]":
    """Offer authentication methods to a virtual host: dialogues of several steps, for protocols that support them.

    The mappings of all plugins are merged; the same name from two plugins stops the start with
    ``DuplicateAuthenticationMethod``. A client requests a method by its name (MQTT 5: the Authentication Method of its
    CONNECT), so a name should be that of the IANA's SASL registry if it has one. The permissions of the client come
    from the authorizers as usual.

    :param vhost: the name of the virtual host that is starting.
    :param directory: the users and permissions of the internal database, for reading.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: names with methods, possibly none. ``gateway.api.AuthenticationMethod`` and ``gateway.api.Dialogue`` are
        their contracts.
    """
    raise NotImplementedError


@hookspec
def gateway_authorizers(
    vhost: str, directory: "Directory", permissions_changed: Callable[[], None], settings: Settings
) -> "Sequence[Authorizer]":
    """Offer authorizers to a virtual host.

    The sequences of all plugins are joined in order; a connection calls one after the other until one returns the
    user's permissions. It caches them until permissions change.

    :param vhost: the name of the virtual host that is starting.
    :param directory: the users and permissions of the internal database, for reading.
    :param permissions_changed: makes every connection in the virtual host read its permissions again before the next
        use. For authorizers with their own users; changes of the directory are detected anyway. Cheap; to be called on
        the kernel's thread, at any time after this hook has returned.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: authorizers, possibly none. ``gateway.api.Authorizer`` is their contract.
    """
    raise NotImplementedError


@hookspec
def gateway_access_wrappers(vhost: str, plugins: Collection[str], settings: Settings) -> "Sequence[AccessWrapper]":
    """Offer objects that stand before the authenticators and authorizers of other plugins, such as a cache.

    The sequences of all plugins are joined in order; each wraps what the one before it returned. Called again after
    every change of a plugin of the virtual host, since what they wrap may be new.

    :param vhost: the name of the virtual host that is starting.
    :param plugins: the access plugins that the virtual host enables by name. Only their objects should be wrapped:
        those of the always enabled ones answer from memory.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: wrappers, possibly none. ``gateway.api.AccessWrapper`` is their contract; what they return fulfils that
        of an authenticator or authorizer.
    """
    raise NotImplementedError


# -- Messages --------------------------------------------------------------------------------------------------------


@hookspec
def gateway_interceptors(vhost: TracedVhost, settings: Settings) -> Sequence[Interceptor]:
    """Offer interceptors, which inspect, change, refuse or divert the messages of a virtual host.

    The interceptors of all plugins are joined in order; each gets what the one before it returned. They are called for
    every message that a client publishes, before it is routed, and for every delivery. If one fails, its own
    ``on_error`` decides whether the message is refused or goes on.

    :param vhost: the virtual host that is starting; usable from the first message on, not yet during the call.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: interceptors, possibly none. ``gateway.api.Interceptor`` is their contract;
        ``gateway.testing.check_interceptor`` tests them.
    """
    raise NotImplementedError


# -- Tracing ----------------------------------------------------------------------------------------------------------


@hookspec
def gateway_tracers(vhost: TracedVhost, settings: Settings) -> Sequence[Tracer]:
    """Offer tracers, which observe every message of a virtual host.

    The tracers of all plugins are joined in order. They are called for every message that is published and delivered,
    while tracing is on for the virtual host. An exception of a tracer is logged and counted as a fault; it does not
    affect the message.

    :param vhost: the virtual host that is starting; usable from the first traced message on, not yet during the call.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: tracers, possibly none. ``gateway.api.Tracer`` is their contract.
    """
    raise NotImplementedError


# -- Events ----------------------------------------------------------------------------------------------------------


@hookspec
def gateway_event_listeners(vhost: ObservedVhost, settings: Settings) -> Sequence[EventListener]:
    """Offer event listeners, which observe what happens in a virtual host and on its node, except messages.

    The listeners of all plugins are joined in order. They are called with the events of their virtual host and of the
    node: connections, channels, logins, users, permissions, virtual hosts, exchanges, queues, bindings, policies,
    alarms, the store, faults.

    :param vhost: the virtual host that is starting; an exchange may be provided during the call, and messages be
        published from the first event on.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: listeners, possibly none. ``gateway.api.EventListener`` is their contract.
    """
    raise NotImplementedError


# -- Operators -------------------------------------------------------------------------------------------------------


@hookspec
def gateway_http_resources(vhost: TracedVhost, settings: Settings) -> Sequence[HttpResource]:
    """Offer resources of the management API, below ``/api/plugins/VHOST/PLUGIN/resources/``.

    The resources exist while the plugin is enabled in the virtual host. A request is answered with the user's
    permissions checked; an exception is a fault of the plugin and the answer 500.

    :param vhost: the virtual host that is starting; usable from the first request on, not yet during the call.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: resources, possibly none. ``gateway.api.HttpResource`` is their contract;
        ``gateway.testing.check_http_resource`` tests them.
    """
    raise NotImplementedError


@hookspec
def gateway_ctl_verbs(vhost: str, settings: Settings) -> Sequence[CtlVerb]:
    """Offer verbs of gatewayctl: ``gatewayctl PLUGIN VERB ARGUMENT...``.

    Called after ``gateway_http_resources``: each verb names a resource of the same plugin. gatewayctl, which may run on
    another machine, gets the descriptions over HTTP, and executes no code of the plugin.

    :param vhost: the name of the virtual host that is starting.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: verbs, possibly none. ``gateway.api.CtlVerb`` is their contract; ``gateway.testing.check_ctl_verb`` tests
        them.
    """
    raise NotImplementedError


@hookspec
def gateway_ui_panels(vhost: str, settings: Settings) -> Sequence[UiPanel]:
    """Offer panels of the web UI, which show tables, numbers or texts.

    Called after ``gateway_http_resources``: each panel names a GET resource of the same plugin. The UI shows what the
    resource returns, and executes no code of the plugin.

    :param vhost: the name of the virtual host that is starting.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: panels, possibly none. ``gateway.api.UiPanel`` is their contract; ``gateway.testing.check_ui_panel`` tests
        them.
    """
    raise NotImplementedError


# -- Metrics ---------------------------------------------------------------------------------------------------------


@hookspec
def gateway_metrics(vhost: str, settings: Settings) -> Sequence[MetricSource]:
    """Offer metrics of the plugin, which the broker exports for Prometheus, StatsD and OpenTelemetry.

    The sources of all plugins are read for each scrape. The metric ``orders_total`` of the plugin ``shop`` is exported
    as ``gateway_plugin_shop_orders_total``, with the virtual host as label ``vhost``. The numbers of metrics, samples
    and labels are limited. An exception, or a metric that breaks the rules, is logged and counted as a fault; the
    scrape goes on without it.

    :param vhost: the name of the virtual host that is starting.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: sources of metrics, possibly none. ``gateway.api.MetricSource`` is their contract;
        ``gateway.testing.check_metric_source`` tests them.
    """
    raise NotImplementedError
