"""Functions that the rule of the inventory finds and that need no target, with the reasons."""

from collections.abc import Mapping
from typing import Final

_WRITES = "it writes bytes"
_PASSES = "it passes bytes on to a decoder that has a target"
_INTERFACE = "an interface; its implementations have targets"
_COMPUTES = "a function of bytes of which any are valid"
_OTHERS = "the decoder is that of a library, for bytes of a broker that the operator chose"

#: Functions by name.
NO_DECODERS: Final[Mapping[str, str]] = {
    "gateway.access.methods:Dialogue.step": _INTERFACE,
    "gateway.access.methods:GuardedDialogue.step": _PASSES,
    "gateway.access.scram:mac": _COMPUTES,
    "gateway.bridges.amqp_connection:AmqpConnection.dataReceived": _OTHERS,
    "gateway.cli.ctl.verb:Seconds.convert": "click passes a word of the command line; float() decides",
    "gateway.cli.migrate.backends:Backends.convert": "settings-rabbitmq-conf calls it line by line",
    "gateway.cli.migrate.ldap_queries:LdapQueries.convert": "settings-rabbitmq-conf calls it line by line",
    "gateway.cli.migrate.rabbitmq:RabbitmqFile.convert_key": "settings-rabbitmq-conf calls it line by line",
    "gateway.cli.migrate.command:SourceFile.convert": _INTERFACE,
    "gateway.cluster.bus:BusListener.on_frame": _INTERFACE,
    "gateway.cluster.bus:BusListener.on_request": _INTERFACE,
    "gateway.cluster.log_writer:LogWriter.append": _WRITES,
    "gateway.cluster.replication.checkpoint:Checkpoint.note_entities": "it takes names, and decodes nothing",
    "gateway.config.cluster:split_urls": "it splits a word of the command line at commas",
    "gateway.kernel.journal.stored_changes:StoredFormat.edited": "it decodes nothing",
    "gateway.kernel.journal.stored_changes:StoredFormat.header": "it keeps the bytes as they are",
    "gateway.kernel.journal.stored_changes:StoredFormat.properties": "it decodes nothing",
    "gateway.kernel.journal.stored_changes:StoredFormat.stamped": "it decodes nothing",
    "gateway.kernel.messages.message:HeaderFormat.edited": _INTERFACE,
    "gateway.kernel.messages.message:HeaderFormat.header": _INTERFACE,
    "gateway.kernel.messages.message:HeaderFormat.properties": _INTERFACE,
    "gateway.kernel.messages.message:HeaderFormat.stamped": _INTERFACE,
    "gateway.kernel.streams.filters:Bloom.mask": _COMPUTES,
    "gateway.management.http.downloads:Download.of_bytes": _WRITES,
    "gateway.management.metrics.exposition:compressed": _WRITES,
    "gateway.management.resources.access.users:UserUpdate.read": "it takes the fields that http-bodies decodes",
    "gateway.management.web.request:Request.receive_body": _PASSES,
    "gateway.net.connection_io:ConnectionIO.take": _PASSES,
    "gateway.net.forwarding.link:LeaderSide.dataReceived": "the answer is one byte, then it passes bytes on",
    "gateway.net.forwarding.link:Side.dataReceived": "it passes the bytes of a client on as they are",
    "gateway.net.machine:ClosedMachine.receive": "it drops what it gets",
    "gateway.net.machine:Machine.receive": _INTERFACE,
    "gateway.net.peer:PeerProtocol.dataReceived": _PASSES,
    "gateway.node.protocols.amqp:AmqpProtocol.refusal": _PASSES,
    "gateway.node.protocols.mqtt:MqttProtocol.refusal": _PASSES,
    "gateway.node.protocols.served:ServedProtocol.refusal": _INTERFACE,
    "gateway.node.protocols.stomp:StompProtocol.refusal": _PASSES,
    "gateway.plugins.files:load_file": "Python compiles the file",
    "gateway.plugins.manager:HookManager.parse_hookimpl_opts": "it reads attributes of a module that Python has loaded",
    "gateway.plugins.registry:PluginRegistry.load_file_again": "Python reads the file",
    "gateway.recording.parsing:ByteFilter.feed": _INTERFACE,
    "gateway.recording.parsing:ParsingStep.take": _INTERFACE,
    "gateway.recording.parsing:Hold.take": "recording-masking calls it through the parser",
    "gateway.recording.parsing:HoldUntil.take": "recording-masking calls it through the parser",
    "gateway.recording.parsing:Nested.take": "recording-masking calls it through the parser",
    "gateway.recording.parsing:Read.take": "recording-masking calls it through the parser",
    "gateway.recording.parsing:ReadUntil.take": "recording-masking calls it through the parser",
    "gateway.recording.parsing:Skip.take": "recording-masking calls it through the parser",
    "gateway.recording.parsing:SkipUntil.take": "recording-masking calls it through the parser",
    "gateway.recording.recorder:RecordedConnection.received": _PASSES,
    "gateway.recording.recorder:RecordedConnection.sent": _PASSES,
    "gateway.recording.tap:TapProtocol.dataReceived": _PASSES,
    "gateway_amqp.errors:octets": _WRITES,
    "gateway_amqp.incoming:IncomingBytes.append": _PASSES,
    "gateway_amqp.incoming:IncomingBytes.release": _PASSES,
    "gateway_exchanges.murmur:murmur3": _COMPUTES,
    "gateway_jetstream.ports.admission:MonitoringBody.dataReceived": _PASSES,
    "gateway_jetstream.client.protocol:NatsConnection.dataReceived": _PASSES,
    "gateway_memory.cluster.bus:MemoryRequest.end": _PASSES,
    "gateway_lmdb.stream_tables:heads_from": "LMDB reads the table; kernel-chunks reads the heads",
}

#: Modules that call a parser of the standard library, beside those with a target.
NO_DECODERS_IN: Final[Mapping[str, str]] = {
    "gateway.cli.ctl.api": "it decodes answers of the broker that the user chose",
    "gateway.cli.ctl.connecting.profile_changes": "it decodes what it is about to write",
    "gateway.cli.ctl.connecting.profiles": "it decodes a file of the user, as settings-file does",
    "gateway.cli.ctl.verbs.definitions": "it decodes a file of the user; the target definitions has the broker's",
    "gateway.cli.ctl.verbs.plugin_verbs": "it decodes answers of the broker that the user chose",
    "gateway.cli.local_cluster.nodes": "it decodes answers of a node that it has started",
    "gateway.cli.local_cluster.servers": "it decodes answers of a server that it has started",
    "gateway.cli.migrate.target": "it checks what settings-rabbitmq-conf and settings-mosquitto-conf made",
    "gateway.management.pipeline.job_results": "one short file that a job of the operator wrote; any fault is shown",
    "gateway.management.pipeline.streams": "one JSON list of a query, of which it checks each item",
    "gateway.management.web.request": "http-queries calls it through request_info",
    "gateway.node.cluster.engine": "it splits URLs of the settings, which they have checked",
    "gateway.node.otlp": "it splits a URL of the settings, which they have checked",
    "gateway_auth.mosquitto.control.edits": "it reads a file that access-mosquitto-files decodes",
    "gateway_interceptors.validation.avro": "it decodes a schema of the settings when the broker starts",
}
