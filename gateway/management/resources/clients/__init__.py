"""Resources of connected clients and bridges: connections, channels, consumers, sessions, shovels."""
