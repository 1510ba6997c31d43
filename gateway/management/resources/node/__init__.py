"""Resources of the node: health, settings, plugins, maintenance, the audit record."""
