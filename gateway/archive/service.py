"""The archive part of a node: creates the writers of archive and Arrow files from the settings."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.archive.archive_writer import ArchiveWriter
from gateway.archive.redaction import BodyRule
from gateway.archive.schemas import archive_schemas
from gateway.archive.stream_encoder import StreamEncoder
from gateway.archive.targets import archive_directory, archive_target
from gateway.columnar.absent import has_arrow
from gateway.columnar.tables.adopted import has_unadopted_files
from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, TRACE_TABLE, IcebergAddress
from gateway.config import Settings
from gateway.kernel.archives.archive import ArchiveRules
from gateway.kernel.journal.changes import StreamSegment
from gateway.kernel.streams.stream import Stream
from gateway.logs import StructuredLog

if TYPE_CHECKING:
    from gateway.kernel.broker.broker import Broker
    from gateway.worker_process.process import WorkerProcess

_log: Final = StructuredLog("archive")


def archive_rules(settings: Settings) -> ArchiveRules:
    """Return the limits at which archives seal a segment."""
    archive = settings.archive
    return ArchiveRules(archive.segment_size, archive.segment_age_s, archive.max_backlog)


class ArchiveService:
    """Owns both kinds of work for the worker process. Create it before recovery, which may already find work."""

    def __init__(
        self, settings: Settings, broker: "Broker", worker: "WorkerProcess", touch: Callable[[], None]
    ) -> None:
        self._broker = broker
        has_files = settings.storage.engine != "memory"
        wants_all = settings.streams.encode == "sealed"
        self._encoding = StreamEncoder(broker, worker, wants_all=wants_all) if has_files else None
        redact = [BodyRule.parse(rule) for rule in settings.archive.redact]
        schemas = archive_schemas(settings)
        broker.archive_context.tables = frozenset(schemas) if has_arrow() else None
        target = archive_target(settings)
        self._adoptable = archive_directory(settings) if isinstance(target, IcebergAddress) else None
        self._filing = ArchiveWriter(broker, worker, target, touch, has_files=has_files, redact=redact, schemas=schemas)

    def encode_from_now_on(self, stream: Stream) -> None:
        """Mark a stream as read in columnar form: its segments are encoded ahead of reads from now on."""
        if self._encoding is not None:
            self._encoding.want(stream)

    def encode_now(self, stream: Stream, segment: StreamSegment, done: Callable[[bool], None]) -> None:
        """Encode a sealed segment for a reader; call ``done``, possibly immediately, with whether its file exists.

        The file does not exist if the store keeps no files or has not written the segment yet.
        """
        if self._encoding is None:
            done(False)
        else:
            self._encoding.encode_now(stream, segment, done)

    def start(self) -> None:
        """Start with the segments that recovery found; warn of archives that readers do not see."""
        if (directory := self._adoptable) is not None:
            for table in (ARCHIVE_TABLE, TRACE_TABLE):
                if has_unadopted_files(directory / table):
                    _log.warning(
                        "files in the Parquet format are not in the Iceberg table, whose readers do not see their rows",
                        directory=str(directory / table),
                        advice="gateway archive adopt",
                    )
        if self._encoding is not None:
            self._encoding.start()
        waiting = sum(len(vhost.archives) for vhost in self._broker.vhost_by_name.values())
        if waiting and self._broker.archive_context.tables is None:
            _log.warning(
                "archives wait: they need the Python library pyarrow, which is not installed", archives=waiting
            )
