"""/plugins: the plugins of the process, and their state and settings in each virtual host."""

from collections.abc import Generator, Iterator

from gateway.kernel.errors import NotAllowed
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.routes import Fields, LongTask, Reply, Routes, put_reply
from gateway.management.plugin_control import PluginControl

routes = Routes()


@routes.get("/plugins", level=AccessLevel.ADMINISTRATOR)
def plugins(call: Call) -> LongTask:
    """List the plugins of the process, with the settings that they accept."""
    return LongTask(_listed(_control(call).available()))


@routes.get("/plugins/<vhost>", level=AccessLevel.ADMINISTRATOR)
def plugins_in(call: Call, vhost: str) -> LongTask:
    """List the plugins with their state, settings and faults in a virtual host."""
    return LongTask(_listed(_rows(call, vhost)))


@routes.get("/plugins/<vhost>/<name>", level=AccessLevel.ADMINISTRATOR)
def plugin(call: Call, vhost: str, name: str) -> Fields:
    """Return the state of a plugin in a virtual host."""
    for row in _rows(call, vhost):
        if row["name"] == name:
            return row
    raise missing()


@routes.put("/plugins/<vhost>/<name>", level=AccessLevel.ADMINISTRATOR)
def enable(call: Call, vhost: str, name: str) -> LongTask:
    """Enable a plugin, with the settings in the body; or change the settings of an enabled one."""
    _require_vhost(call, vhost)
    settings = call.fields if call.content.strip() else None
    return _task(_control(call).enabling(vhost, name, settings))


@routes.delete("/plugins/<vhost>/<name>", level=AccessLevel.ADMINISTRATOR)
def disable(call: Call, vhost: str, name: str) -> LongTask:
    """Disable a plugin."""
    _require_vhost(call, vhost)
    return _task(_control(call).disabling(vhost, name))


@routes.post("/plugins/<vhost>/<name>/reload", level=AccessLevel.ADMINISTRATOR)
def reload(call: Call, vhost: str, name: str) -> LongTask:
    """Put the version that is in the plugin's file now in use."""
    _require_vhost(call, vhost)
    return _task(_control(call).reloading(vhost, name))


@routes.post("/plugins/<vhost>/<name>/rollback", level=AccessLevel.ADMINISTRATOR)
def roll_back(call: Call, vhost: str, name: str) -> LongTask:
    """Put the version before the last reload in use."""
    _require_vhost(call, vhost)
    return _task(_control(call).rolling_back(vhost, name))


@routes.put("/plugin-files/<name>", level=AccessLevel.ADMINISTRATOR)
def upload(call: Call, name: str) -> Reply:
    """Write a plugin file, if the setting ``plugins.allow_upload`` permits it. The body is its source."""
    return put_reply(_control(call).upload(name, call.content, call.principal.name))


def _listed(rows: Iterator[Fields]) -> Generator[None, None, list[Fields]]:
    """Return the rows as the result of steps, one each: the schema of a plugin's settings takes a millisecond."""
    found = []
    for row in rows:
        found.append(row)
        yield
    return found


def _rows(call: Call, vhost: str) -> Iterator[Fields]:
    _require_vhost(call, vhost)
    return _control(call).in_vhost(vhost)


def _control(call: Call) -> PluginControl:
    control = call.context.plugins
    if control is None:
        raise bad_request("the plugins of this broker cannot be changed while it runs")
    return control


def _require_vhost(call: Call, name: str) -> None:
    """Require that a virtual host exists and is not being deleted."""
    try:
        call.broker.vhost(name)
    except NotAllowed:
        raise missing() from None


def _task(steps: Generator[None, None, None]) -> LongTask:
    """Return the task of one change; changes are made one after the other."""
    return LongTask(steps, is_exclusive=True)
