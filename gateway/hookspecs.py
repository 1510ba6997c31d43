"""The door for plugins: every hook, when it is asked, and what becomes of the answers.

The laws are the same for all of them:

* A hook is asked for *objects* once, while a virtual host starts, and never again for a message, a connection or a
  declaration. Those call the objects.
* A hook is asked only of the plugins its virtual host enables, and of the built-in ones that are always on. Each plugin
  is asked by itself and sees its own ``settings``: the table the virtual host keeps under the plugin's name.
* The order is that of the virtual host's table; built-ins that the table does not name come before it.
* Everything happens on the kernel's thread, the hooks and their objects alike. Neither may block.
* An implementation may leave out the parameters it does not need, and must not give them defaults. It returns an
  empty answer for nothing, never ``None``.
* An exception makes the plugin inert in the virtual host; the log and ``gateway check`` name the plugin, its file and
  line. A plugin that dislikes its settings raises ``ConfigurationError`` with a sentence for the operator.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from pluggy import HookimplMarker, HookspecMarker

from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.messages.message import Properties, Value
from gateway.kernel.routing.exchange_type import ExchangeTypes

if TYPE_CHECKING:
    from gateway.access import AuthenticationMethod, Authenticator, Authorizer, PasswordCheck
    from gateway.kernel.broker.directory import Directory

PROJECT: Final = "gateway"
"""What pluggy knows us by."""

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)


class TracedVhost(Protocol):
    """As much of a virtual host as a tracer needs: where it is, and a way to report."""

    @property
    def name(self) -> str:
        """The name of the virtual host."""
        ...

    @property
    def node(self) -> str:
        """The name of the node it runs on."""
        ...

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Publish a message of the broker's own: transient, unconfirmed, dropped where no queue takes it.

        The publishing is not traced; its deliveries are, so a tracer leaves alone what it published itself.
        """
        ...


# -- Routing ----------------------------------------------------------------------------------------------------------


@hookspec
def gateway_exchange_types(vhost: str, settings: Mapping[str, Value]) -> ExchangeTypes:
    """Offer exchange types to a virtual host.

    Called once per virtual host while it starts, before any exchange is recovered. The mappings of all plugins are
    merged; the same name from two plugins stops the start with ``DuplicateExchangeType``.

    :param vhost: the name of the virtual host that is starting.
    :param settings: the plugin's own table in the virtual host's ``plugins``; empty for a built-in it does not name.
    :returns: exchange type name to factory. The factory is called with the declare arguments for each exchange that is
        declared or recovered, and may raise ``PreconditionFailed`` for them. See ``gateway.api.ExchangeType`` for what
        its objects owe; ``gateway.testing.check_exchange_type`` tries it out.
    """
    raise NotImplementedError


# -- Access -----------------------------------------------------------------------------------------------------------


@hookspec
def gateway_authenticators(
    vhost: str, directory: "Directory", passwords: "PasswordCheck", settings: Mapping[str, Value]
) -> "Sequence[Authenticator]":
    """Offer ways to find out who is connecting to a virtual host.

    Called once per virtual host while it starts. The sequences of all plugins are joined in order; a connection asks
    one after the other until one knows the user.

    :param vhost: the name of the virtual host that is starting.
    :param directory: the users and permissions of the internal database, for reading.
    :param passwords: checks a password of such a user off the kernel's thread, in the same time for unknown users.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: authenticators, possibly none. See ``gateway.api.Authenticator`` for what each is asked, and when.
    """
    raise NotImplementedError


@hookspec
def gateway_authentication_methods(
    vhost: str, directory: "Directory", settings: Mapping[str, Value]
) -> "Mapping[str, AuthenticationMethod]":
    """Offer authentication methods to a virtual host: dialogues of several turns, for protocols that have them.

    Called once per virtual host while it starts. The mappings of all plugins are merged; the same name from two
    plugins stops the start with ``DuplicateAuthenticationMethod``. A client asks for a method by its name (MQTT 5: the
    Authentication Method of its CONNECT), so names are those of the IANA's SASL registry where it has one. Who was let
    in by a method is asked for its permissions as everybody is.

    :param vhost: the name of the virtual host that is starting.
    :param directory: the users and permissions of the internal database, for reading.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: name to method, possibly none. See ``gateway.api.AuthenticationMethod`` and ``gateway.api.Dialogue`` for
        what each is asked, and when.
    """
    raise NotImplementedError


@hookspec
def gateway_authorizers(
    vhost: str, directory: "Directory", permissions_changed: Callable[[], None], settings: Mapping[str, Value]
) -> "Sequence[Authorizer]":
    """Offer ways to find out what someone who has connected may do in a virtual host.

    Called once per virtual host while it starts. The sequences of all plugins are joined in order; a connection asks
    one after the other until one knows the user's permissions. It keeps the answer until permissions change.

    :param vhost: the name of the virtual host that is starting.
    :param directory: the users and permissions of the internal database, for reading.
    :param permissions_changed: makes every connection in the virtual host ask again before it next needs a permission.
        For authorizers that know users of their own; changes of the directory are noticed anyway. Cheap; to be called
        on the kernel's thread, any time after this hook has returned.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: authorizers, possibly none. See ``gateway.api.Authorizer`` for what each is asked, and when.
    """
    raise NotImplementedError


# -- Tracing ----------------------------------------------------------------------------------------------------------


@hookspec
def gateway_tracers(vhost: TracedVhost, settings: Mapping[str, Value]) -> Sequence[Tracer]:
    """Offer tracers, which see every message of a virtual host pass.

    Called once per virtual host while it starts. The tracers of all plugins are joined in order. They are called for
    every message that is published and delivered, and only while tracing is on for the virtual host. What they raise is
    logged and counted as a fault of the plugin; the message goes on.

    :param vhost: the virtual host that is starting; usable from the first traced message on, not yet during the call.
    :param settings: the plugin's own table in the virtual host's ``plugins``.
    :returns: tracers, possibly none. See ``gateway.api.Tracer``.
    """
    raise NotImplementedError
