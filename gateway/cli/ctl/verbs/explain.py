"""The verb ``explain``: where a message would go and why, without publishing it."""

from collections.abc import Iterator

import click

from gateway.cli.ctl.errors import WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, compact, number, objects, parse_object, part, text
from gateway.cli.ctl.verb import verb


@verb
@click.argument("exchange", required=False)
@click.argument("routing_key", required=False)
@click.option("--mqtt-topic", help="Explain a publish to this MQTT topic.")
@click.option("--client-id", help="The MQTT client identifier, for topic permissions.")
@click.option("--stomp-destination", help="Explain a SEND to this STOMP destination.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of the message, as text.")
@click.option("--properties", help="The properties of the message, as a JSON object.")
@click.option("--user", help="The publisher. [the user of this command]")
def explain(
    session: VerbSession,
    exchange: str | None,
    routing_key: str | None,
    mqtt_topic: str | None,
    client_id: str | None,
    stomp_destination: str | None,
    headers: tuple[str, ...],
    properties: str | None,
    user: str | None,
) -> None:
    """Show where a message would go and why, without publishing it. The default exchange is amq.default."""
    addresses = {"exchange": exchange, "mqtt_topic": mqtt_topic, "stomp_destination": stomp_destination}
    if sum(address is not None for address in addresses.values()) != 1:
        raise WrongUsage("give either EXCHANGE and ROUTING_KEY, --mqtt-topic or --stomp-destination")
    asked = addresses | {"routing_key": routing_key, "client_id": client_id, "user": user}
    fields: JsonObject = {name: value for name, value in asked.items() if value is not None}
    if properties is not None:
        fields["properties"] = parse_object(properties, "the properties")
    if headers:
        fields["headers"] = dict(map(_header, headers))
    with session.reporting_missing(f"exchange '{exchange or ''}'"):
        answer = session.api.ask("explain", session.vhost, body=fields)
    if session.output.formatter == "json":
        session.output.value(answer)
    else:
        for line in _lines(answer):
            session.output.text(line)


def _header(written: str) -> tuple[str, str]:
    name, equals, value = written.partition("=")
    if not (name and equals):
        raise WrongUsage(f"--header must be NAME=VALUE, not '{written}'")
    return name, value


def _lines(answer: Json) -> Iterator[str]:
    """Yield the explanation as text, the result first."""
    yield f"Outcome: {text(answer, 'outcome')}" + ("" if part(answer, "allowed") else ", but the publish is refused")
    yield f"Publish of user {text(answer, 'user')} to exchange {_quoted(answer, 'exchange')}" + (
        f" with routing keys {compact(part(answer, 'routing_keys'))}"
    )
    for check in objects(part(answer, "checks")):
        verdict = "allowed" if part(check, "allowed") else f"refused: {text(check, 'reason')}"
        yield f"  check {text(check, 'check')}: {verdict}"
    if declared := text(answer, "declares_queue"):
        yield f"  declares the queue '{declared}' if it does not exist"
    if interceptors := part(answer, "interceptors"):
        yield f"  first passes the interceptors of the plugins {compact(interceptors)}"
    for exchange in objects(part(answer, "exchanges")):
        yield from _exchange_lines(exchange)
    for queue in objects(part(answer, "queues")):
        refusal = text(queue, "refusal")
        yield f"Queue {_quoted(queue, 'name')} ({text(queue, 'type')}){_policies(queue)}" + (
            f": would refuse the message: {refusal}" if refusal else ""
        )


def _exchange_lines(exchange: JsonObject) -> Iterator[str]:
    plugin = text(exchange, "plugin")
    yield (
        f"Exchange {_quoted(exchange, 'name')} ({text(exchange, 'type')}"
        f"{f' by plugin {plugin}' if plugin else ''}){_policies(exchange)}: "
        f"{number(exchange, 'bindings_matched')} of {number(exchange, 'bindings_tried')} bindings match"
    )
    for binding in objects(part(exchange, "bindings")):
        sign = "+" if part(binding, "matched") else "-"
        arguments = part(binding, "arguments")
        yield f"  {sign} {_quoted(binding, 'routing_key')}{f' {compact(arguments)}' if arguments else ''} -> " + (
            f"{text(binding, 'destination_type')} {_quoted(binding, 'destination')}"
        )
    for name, meaning in (("intercepted", "the message is"), ("inert", "routes nothing:"), ("fault", "failed:")):
        if found := text(exchange, name):
            yield f"  {meaning} {found}"
    if part(exchange, "used_alternate"):
        yield f"  no destination: on to the alternate exchange {_quoted(exchange, 'alternate_exchange')}"


def _policies(entity: JsonObject) -> str:
    words = (("policy", "policy"), ("operator_policy", "operator policy"))
    return "".join(f", {word} {_quoted(entity, name)}" for name, word in words if text(entity, name))


def _quoted(value: Json, name: str) -> str:
    return f"'{text(value, name)}'"


VERBS = (explain,)
