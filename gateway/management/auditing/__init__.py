"""The audit record of changes over HTTP."""
