"""The verb that prints completion scripts."""

import click

from gateway.cli.completion import SHELLS, completion_script


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes verbs and options in bash, zsh or fish."""
    group = context.find_root().command
    assert isinstance(group, click.Group)
    click.echo(completion_script(group, "gatewayctl", shell))


@click.command()
@click.argument("prefix", default="")
@click.pass_context
def autocomplete(context: click.Context, prefix: str) -> None:
    """Print the verbs that begin with PREFIX, as rabbitmqctl does."""
    group = context.find_root().command
    assert isinstance(group, click.Group)
    for name in sorted(group.commands):
        if name.startswith(prefix):
            click.echo(name)


VERBS = (completion, autocomplete)
