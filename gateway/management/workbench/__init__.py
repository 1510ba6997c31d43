"""The message workbench over HTTP."""
