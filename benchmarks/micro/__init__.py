"""Parts of the gateway, measured in one process; each is run by hand."""
