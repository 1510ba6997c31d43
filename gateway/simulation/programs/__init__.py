"""The programs of the clients: what each one does in a run, as the seed decides."""
