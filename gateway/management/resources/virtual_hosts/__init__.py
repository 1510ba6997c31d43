"""Resources of virtual hosts and what they contain: exchanges, queues, streams, policies, definitions."""
