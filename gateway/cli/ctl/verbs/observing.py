"""The verb for a live view of the broker."""

import click

from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb


@verb
@click.option("-i", "--interval", type=click.FloatRange(0.2, 3600), default=2.0, show_default=True, help="Seconds.")
@click.option("--view", type=click.Choice(["queues", "connections", "turns"]), default="queues", show_default=True)
@click.option("--once", is_flag=True, help="Print one screen and end.")
def observe(session: VerbSession, interval: float, view: str, once: bool) -> None:
    """Show rates, queues by depth, connections, alarms and turns in the terminal, live; ? lists the keys."""
    from gateway.cli.ctl.observe.dashboard import observe_broker  # imported here because rich is slow to import

    observe_broker(session, interval, view, once)


VERBS = (observe,)
