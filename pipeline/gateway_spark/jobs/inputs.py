"""The inputs of jobs: their options, and the data frames and streams."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gateway_spark.address import DEFAULT_URL
from gateway_spark.archive import read_archive, read_trace, require_table
from gateway_spark.brokers import Brokers
from gateway_spark.choices import moment_ms, read
from gateway_spark.errors import OptionError
from gateway_spark.iceberg import ADOPTED
from gateway_spark.jobs.job import JobRun, Reads
from gateway_spark.jobs.words import moment_text
from gateway_spark.options import sink_options, source_options
from gateway_spark.planning import require_selected


def add_input_options(parser: ArgumentParser, reads: Reads) -> None:
    """Add the options of every job that reads messages or the trace."""
    group = parser.add_argument_group("the kind of input")
    if reads is Reads.MESSAGES:
        group.add_argument("--source", choices=("stream", "archive"), help="default: archive if --archive is given")
        group.add_argument("--exchange", action="append", metavar="NAME", help="for archives: this exchange's (repeat)")
        group.add_argument("--queue-pattern", metavar="REGEX", help="for streams: all whose whole name matches")
    group.add_argument("--queue", action="append", metavar="NAME", help="this queue (repeat)")
    group.add_argument("--archive", type=Path, metavar="DIR", help="the directory of the archive, or of the trace")
    since_help = "only messages from this time on: ISO 8601, or ms since 1970"
    group.add_argument("--since", type=moment_text, metavar="TIME", help=since_help)
    group.add_argument("--until", type=moment_text, metavar="TIME", help="only messages before this time")
    add_connection_options(parser)


def add_connection_options(parser: ArgumentParser) -> None:
    """Add the options of the broker's address and the user."""
    group = parser.add_argument_group("the broker")
    group.add_argument("--url", help="the broker's management port (default: http://127.0.0.1:15672)")
    group.add_argument("--urls", metavar="URL,URL", help="instead: the management ports of a cluster's nodes")
    brokers_help = "instead: several brokers by name, whose streams of one name are partitions of one queue"
    group.add_argument("--brokers", metavar="JSON", help=brokers_help)
    group.add_argument("--vhost", help="the virtual host (default: / for a broker, all for an archive)")
    group.add_argument("--username", help="the user (default: guest)")
    group.add_argument("--password-file", metavar="FILE", help="the file with the password")
    group.add_argument("--password-env", metavar="NAME", help="the environment variable with the password")
    group.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="another option of the source (repeat)"
    )


def check(options: Namespace, reads: Reads) -> None:
    """Check a job's input options before Spark is started.

    :raises OptionError: if an option is invalid, missing, or inconsistent with the others.
    """
    if reads is not Reads.MESSAGES or not reads_stream(options):
        _check_files(options, reads)
        return
    if options.archive is not None:
        raise OptionError("--archive is for --source archive")
    if options.exchange:
        raise OptionError("--exchange is for --archive: a stream is a queue")
    given = stream_options(options, is_stream=follows(options))
    if not {"queue", "queues", "queuepattern"} & {name.lower() for name in given}:
        raise OptionError("--queue NAME, --queue-pattern REGEX or --archive DIR is required")
    source = source_options(given, is_stream=follows(options))
    _require_period(options)
    with closing(Brokers(source.brokers)) as brokers:
        require_selected(source.start, "startingOffsets", brokers.streams(source.selection))


def _require_period(options: Namespace) -> None:
    since, until = bounds(options)
    if since is not None and until is not None and since >= until:
        raise OptionError("--since must be before --until: no message is from that time on and before it")


def _check_files(options: Namespace, reads: Reads) -> None:
    if options.archive is None:
        raise OptionError(f"--archive DIR is required to read the {'trace' if reads is Reads.TRACE else 'archive'}")
    if getattr(options, "queue_pattern", None) is not None:
        raise OptionError("--queue-pattern is for streams; for an archive give each --queue")
    if getattr(options, "checkpoint", None) is not None:
        raise OptionError("--checkpoint is for streams: an archive is read as a whole")
    require_table(options.archive)
    _require_period(options)


def awaited(options: Namespace) -> str:
    """Return what a check that takes long waits for, in words; nothing for a job that asks no broker."""
    if getattr(options, "brokers", None) is not None:
        return "waiting for an answer of the brokers"
    is_stream = "source" in options and reads_stream(options)
    place = getattr(options, "urls", None) or getattr(options, "url", None) or (DEFAULT_URL if is_stream else "")
    return f"waiting for an answer of {place}" if place else ""


def reads_stream(options: Namespace) -> bool:
    """Return whether a job for messages reads them from the broker."""
    return bool((options.source or ("archive" if options.archive else "stream")) == "stream")


def follows(options: Namespace) -> bool:
    """Return whether a job continues a stream from a checkpoint, rather than reading everything."""
    if getattr(options, "checkpoint", None) is not None:
        return True
    return "checkpoint" in options and options.continuous and reads_stream(options)


def messages(run: JobRun) -> DataFrame:
    """Return the selected messages as they are now."""
    options = run.options
    if not reads_stream(options):
        chosen = (options.vhost, options.queue, options.exchange)
        _warn_if_adopted(run)
        return read_archive(run.spark, options.archive, *chosen, *bounds(options))
    return run.spark.read.format("gateway").options(**stream_options(options, is_stream=False)).load()


def incarnations(options: Namespace) -> dict[str, str]:
    """Return the incarnation of each selected partition of a stream, by ``queue/partition``; none for an archive."""
    if not reads_stream(options):
        return {}
    source = source_options(stream_options(options, is_stream=False), is_stream=False)
    with closing(Brokers(source.brokers)) as brokers:
        streams = brokers.streams(source.selection)
    return {f"{key.queue}/{key.partition}": each.incarnation or "" for key, each in sorted(streams.items())}


def message_stream(run: JobRun) -> DataFrame:
    """Return the selected messages as a stream, from the earliest by default."""
    return run.spark.readStream.format("gateway").options(**stream_options(run.options, is_stream=True)).load()


def _warn_if_adopted(run: JobRun) -> None:
    """Warn if an Iceberg table has adopted the archive: it has the rows that were filed since, or merged."""
    root = run.options.archive
    if (root / ADOPTED).exists():
        table = root.absolute().parent / "iceberg" / root.absolute().name
        run.progress.warn(f"{root} belongs to an Iceberg table, by default {table}, which may have further rows")


def trace(run: JobRun) -> DataFrame:
    """Return the selected trace events."""
    options = run.options
    _warn_if_adopted(run)
    frame = read_trace(run.spark, options.archive, options.vhost, *bounds(options))
    if options.queue:
        # An event before routing belongs to no queue, so it matches all.
        frame = frame.where(F.col("queue").isNull() | F.col("queue").isin(options.queue))
    return frame


def bounds(options: Namespace) -> tuple[datetime | None, datetime | None]:
    """Return the times of ``--since`` and ``--until``."""
    return _moment("--since", options.since), _moment("--until", options.until)


def stream_options(options: Namespace, *, is_stream: bool) -> dict[str, str]:
    """Return the options of ``format("gateway")`` for the command line."""
    given = connection_options(options)
    if options.queue:
        given["queues"] = json.dumps(options.queue)
    if options.queue_pattern:
        given["queuePattern"] = options.queue_pattern
    if is_stream:
        given.setdefault("startingOffsets", "earliest")
    if options.since:
        given.pop("startingOffsets", None)
        given["startingTimestamp"] = options.since
    if options.until:
        given["endingTimestamp"] = options.until
    return given


def connection_options(options: Namespace) -> dict[str, str]:
    """Return the options of the connection, and those given by ``--option``."""
    named: Mapping[str, str | None] = {
        "url": options.url,
        "urls": options.urls,
        "brokers": options.brokers,
        "vhost": options.vhost,
        "username": options.username,
        "passwordFile": options.password_file,
        "passwordEnv": options.password_env,
    }
    given = {name: value for name, value in named.items() if value is not None}
    for word in options.option:
        name, equals, value = word.partition("=")
        if not equals:
            raise OptionError(f"--option needs NAME=VALUE, not '{word}'")
        given[name] = value
    return given


def require_one_broker(options: Namespace) -> None:
    """Check that a job which publishes has one broker. :raises OptionError: if it has several."""
    if "brokers" in {name.lower() for name in connection_options(options)}:
        raise OptionError("--brokers is for jobs that only read: messages are published to the broker they come from")


def checked_sink(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a sink. :raises OptionError: if one is invalid, for the driver's error line."""
    sink_options(given, is_stream=False)
    return given


def _moment(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    return datetime.fromtimestamp(read(option, text, moment_ms) / 1000, UTC)
