"""/settings: the settings in effect with their origins, changes until the node stops, and the reload."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/settings", level=AccessLevel.ADMINISTRATOR)
def settings(call: Call) -> Fields:
    """List the settings in effect, with their defaults and their origins."""
    return {"files": list(call.control.config_files()), "settings": call.control.settings()}


@routes.get("/config/effective", level=AccessLevel.ADMINISTRATOR)
def effective(call: Call) -> list[Fields]:
    """List the settings in effect under RabbitMQ's path."""
    return [{"key": row["key"], "value": row["value"], "origin": row["origin"]} for row in call.control.settings()]


@routes.get("/settings/<key>", level=AccessLevel.ADMINISTRATOR)
def setting(call: Call, key: str) -> Fields:
    """Return one setting."""
    return _row(call, key)


@routes.put("/settings/<key>", level=AccessLevel.ADMINISTRATOR)
def change(call: Call, key: str) -> Fields:
    """Change a setting until the node stops."""
    (value,) = require(call.fields, "value")
    call.control.change_setting(key, value, call.principal.name)
    return _row(call, key) | {"survives_restart": False}


@routes.delete("/settings/<key>", level=AccessLevel.ADMINISTRATOR)
def restore(call: Call, key: str) -> None:
    """Restore the configured value of a setting that was changed."""
    if not call.control.restore_setting(key, call.principal.name):
        raise missing()


@routes.post("/reload", level=AccessLevel.ADMINISTRATOR)
def reload(call: Call) -> Fields:
    """Read the configuration and the certificates again; return what changed and what needs a restart."""
    result = dict(call.control.reload(call.principal.name))
    call.audit_details["applied"] = result.get("applied", [])
    return result


def _row(call: Call, key: str) -> Fields:
    for row in call.control.settings():
        if row["key"] == key:
            return dict(row)
    raise missing()
