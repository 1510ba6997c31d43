"""Settings of plugins in a running broker."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section


class PluginRules(Section):
    """Uploads of plugin files, and the limit of faults."""

    allow_upload: bool = False
    """Whether administrators may write files into plugins_dir over HTTP. The broker executes these files."""

    fault_limit: Annotated[int, Field(ge=0, le=1_000_000)] = 100
    """Faults of a plugin within a minute in one virtual host after which it is switched off there; 0 is never."""
