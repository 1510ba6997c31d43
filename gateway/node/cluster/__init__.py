"""One node of a cluster: it follows a leader, or leads, on an engine that several nodes share."""
