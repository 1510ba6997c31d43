"""The services that the plugins of one virtual host offer to operators."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from gateway.hookspecs import TracedVhost
from gateway.kernel.plugin_times import PartTimes
from gateway.plugins.services.ctl_verb import CtlVerb, problem_of_verb
from gateway.plugins.services.http_resource import HttpResource, problem_of_resource
from gateway.plugins.services.ui_panel import UiPanel, problem_of_panel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Offered(Generic[T]):
    """A service and the plugin that offers it."""

    plugin: str
    service: T


class Asking(Protocol):
    """Calls a hook of all plugins."""

    def __call__(
        self, hook: str, kind: type[T], problem: Callable[[str, Sequence[T]], str | None], **asked: object
    ) -> list[tuple[str, T]]:
        """Return the objects of one class that the plugins offer, with the plugins.

        A plugin whose objects have a ``problem`` is refused with this text.
        """
        ...


@dataclass(frozen=True, slots=True)
class VhostServices:
    """The services of one virtual host, with the times of the calls of its resources."""

    resources: Sequence[Offered[HttpResource]] = ()
    verbs: Sequence[Offered[CtlVerb]] = ()
    panels: Sequence[Offered[UiPanel]] = ()
    times: PartTimes = field(default_factory=PartTimes)

    def resources_of(self, plugin: str) -> list[HttpResource]:
        """Return the resources of a plugin."""
        return [offered.service for offered in self.resources if offered.plugin == plugin]

    def resource_of(self, plugin: str, method: str, path: str) -> HttpResource:
        """Return the resource that a verb or a panel of a plugin names."""
        return next(each for each in self.resources_of(plugin) if (each.method, each.path) == (method, path))


def offered_services(asking: Asking, inert: Mapping[str, str], vhost: TracedVhost) -> VhostServices:
    """Ask the plugins of a virtual host for their services; leave out those of plugins that are ``inert`` then.

    :raises ConfigurationError: if a plugin fails, as ``asking`` does.
    """
    found = asking("gateway_http_resources", HttpResource, _problem_of_resources, vhost=vhost)

    def resources_of(plugin: str) -> list[HttpResource]:
        return [resource for name, resource in found if name == plugin]

    def problem_of_verbs(plugin: str, verbs: Sequence[CtlVerb]) -> str | None:
        named = [verb.name for verb in verbs]
        twice = next((f"the verb {name!r} is offered twice" for name in named if named.count(name) > 1), None)
        return twice or _first(problem_of_verb(verb, resources_of(plugin)) for verb in verbs)

    def problem_of_panels(plugin: str, panels: Sequence[UiPanel]) -> str | None:
        return _first(problem_of_panel(panel, resources_of(plugin)) for panel in panels)

    verbs = asking("gateway_ctl_verbs", CtlVerb, problem_of_verbs, vhost=vhost.name)
    panels = asking("gateway_ui_panels", UiPanel, problem_of_panels, vhost=vhost.name)
    resources = _usable(found, inert)
    times = PartTimes(offered.service for offered in resources)
    return VhostServices(resources, _usable(verbs, inert), _usable(panels, inert), times)


def _problem_of_resources(plugin: str, resources: Sequence[HttpResource]) -> str | None:
    seen: set[tuple[str, str]] = set()
    for resource in resources:
        if (problem := problem_of_resource(resource)) is not None:
            return problem
        if (resource.method, resource.path) in seen:
            return f"the resource {resource.method} {resource.path!r} is offered twice"
        seen.add((resource.method, resource.path))
    return None


def _usable(found: Sequence[tuple[str, T]], inert: Mapping[str, str]) -> list[Offered[T]]:
    return [Offered(plugin, service) for plugin, service in found if plugin not in inert]


def _first(problems: Iterable[str | None]) -> str | None:
    return next((problem for problem in problems if problem is not None), None)
