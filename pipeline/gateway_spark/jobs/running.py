"""The run of a job from its command line to its report, for the CLI, spark-submit and tests."""

import logging
import re
import sys
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from gateway_spark.choices import shown
from gateway_spark.errors import OptionError, PipelineError
from gateway_spark.jobs.inputs import add_input_options, awaited, check
from gateway_spark.jobs.job import Job, JobOutcome, JobRun, Reads
from gateway_spark.jobs.outputs import Outputs
from gateway_spark.jobs.progress import ProgressPrinter
from gateway_spark.jobs.reporting import write_report
from gateway_spark.jobs.stages import tasks_of
from gateway_spark.jobs.words import duration_s, master
from gateway_spark.masters import require_master
from gateway_spark.remote import is_remote
from gateway_spark.session import session
from gateway_spark.usage import USAGE, UsageParser

FAILED: Final = 1

SPARKS_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

INTERRUPTED: Final = 130

#: An error of ours in a line of a traceback, or in that of a server.
_OURS: Final = re.compile(r"(?:^|: )gateway_spark\.errors\.\w+: (.+)")

#: The reason in an error of gRPC, which Spark passes on as it is if the server refuses the connection.
_OF_SERVER: Final = re.compile(r'details = "(.+)"')

#: Error of a server whose Python has no installation of ours.
_NOT_INSTALLED: Final = "No module named 'gateway_spark'"

#: Options that are not written to ``run.json``; the location of a password is private.
_SECRET: Final = frozenset({"password_file", "password_env", "option", "conf"})


def main(job: Job, arguments: Sequence[str] | None = None, pause: Callable[[float], None] = time.sleep) -> int:
    """Run a job by a command line, by default that of the process; return the exit code."""
    options = parser_of(job).parse_args(arguments)
    warnings.filterwarnings("ignore", "WARN WindowExpression")  # Spark Connect's; a replay has one order
    for name in SPARKS_LOGGERS:  # their errors are printed below in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        run_job(job, options, pause)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OptionError as error:
        return _failed(error, USAGE)
    except (PipelineError, PySparkException, Py4JError) as error:
        return _failed(error, FAILED)
    return 0


def parser_of(job: Job) -> ArgumentParser:
    """Return the parser of a job's command line."""
    parser = UsageParser(prog=f"gateway pipeline run {job.name}", description=f"{job.name}: {job.summary}.")
    job.add_options(parser)
    if job.reads is Reads.FILES:
        parser.add_argument("--archive", type=Path, required=True, metavar="DIR", help="the directory of the archive")
        parser.add_argument("--vhost", help="only this virtual host")
    else:
        add_input_options(parser, job.reads)
    group = parser.add_argument_group("the run")
    group.add_argument("--out", type=Path, metavar="DIR", help="directory of the results (default: pipeline/JOB)")
    group.add_argument(
        "--master",
        type=master,
        metavar="URL",
        help="local[N], spark://host:port, sc://host:port ... (default: local[2])",
    )
    group.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark (repeat)")
    when = group.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="process the existing messages and end (default)")
    when.add_argument("--continuous", action="store_true", help="continue until interrupted")
    every_help = "with --continuous: the interval between batches (default: 30s)"
    group.add_argument("--every", type=duration_s, default=30.0, metavar="TIME", help=every_help)
    return parser


def run_job(job: Job, options: Namespace, pause: Callable[[float], None] = time.sleep) -> JobOutcome:
    """Run a job, once or until it is interrupted. :raises OptionError: if options are inconsistent."""
    settings = _settings(options.conf)
    outputs = Outputs(options.out or default_directory(job.name, options))
    progress = ProgressPrinter()
    with progress.waiting(lambda: awaited(options)):
        _check(job, options, outputs)
    if options.master is not None:
        with progress.waiting(lambda: f"waiting for an answer of {shown(options.master)}"):
            require_master(options.master)
    progress.say(f"{job.name}: starting Spark")
    with progress.waiting(lambda: "Spark is starting"):
        spark = session(f"gateway {job.name}", options.master, settings)
        tasks_in_words = tasks_of(spark, is_remote=is_remote(options.master))
    progress.say(f"Spark {spark.version} has started")
    while True:
        started = datetime.now(UTC)

        def conclude(outcome: JobOutcome, started: datetime = started) -> None:
            _conclude(job, options, outputs, progress, outcome, started)

        with progress.waiting(tasks_in_words):
            outcome = job.perform(JobRun(spark, options, outputs, progress, conclude))
        conclude(outcome)
        if outcome.failure is not None:
            raise PipelineError(outcome.failure)
        if not options.continuous:
            return outcome
        pause(options.every)


def default_directory(job: str, options: Namespace) -> Path:
    """Return the default of ``--out``: a named replay gets its own directory."""
    return Path("pipeline", job, getattr(options, "name", None) or "")


def _conclude(
    job: Job, options: Namespace, outputs: Outputs, progress: ProgressPrinter, outcome: JobOutcome, started: datetime
) -> None:
    """Write the results of a run: ``run.json``, the report, the summary."""
    for warning in outcome.warnings:
        progress.warn(warning)
    outputs.note(_noted(job, options, outcome, started))
    report = write_report(job, outputs)
    figures = ", ".join(f"{name} {value}" for name, value in outcome.figures.items())
    progress.say(f"{job.name}: done: {figures}")
    progress.say(f"report: {report}")


def _noted(job: Job, options: Namespace, outcome: JobOutcome, started: datetime) -> Mapping[str, Any]:
    given = {name: value for name, value in vars(options).items() if value not in (None, [], False)}
    if options.master is not None:
        given["master"] = shown(options.master)
    return {
        "job": job.name,
        "started": started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "options": {name: value for name, value in given.items() if name not in _SECRET},
        "figures": dict(outcome.figures),
        "warnings": list(outcome.warnings),
    }


def _check(job: Job, options: Namespace, outputs: Outputs) -> None:
    """Check what can be known before Spark is started. :raises PipelineError: for the first problem."""
    if options.continuous and not job.is_repeatable:
        raise OptionError(f"{job.name} runs once; it does not support --continuous")
    outputs.require_writable()
    job.check(options, outputs)
    if job.reads is not Reads.FILES:
        check(options, job.reads)


def _settings(conf: Sequence[str]) -> dict[str, str]:
    settings = {}
    for word in conf:
        name, equals, value = word.partition("=")
        if not equals:
            raise OptionError(f"--conf needs NAME=VALUE, not '{word}'")
        settings[name] = value
    return settings


def _failed(error: Exception, code: int) -> int:
    print(f"gateway pipeline: {reason_of(error)}", file=sys.stderr)
    return code


def reason_of(error: Exception) -> str:
    """Return the cause of an error in one line: the worker's own exception, without Spark's traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(_NOT_INSTALLED in line for line in lines):
        return "the server's Python has no gateway_spark, which jobs that follow a stream need: install it there"
    of_server = [found[1] for line in lines if (found := _OF_SERVER.fullmatch(line)) is not None]
    ours = [found[1] for line in lines if (found := _OURS.search(line)) is not None]
    causes = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")][-1:]
    of_java = [line.lstrip(": ") for line in lines if not line.startswith("An error occurred while calling")]
    return (ours or of_server or causes or of_java or [type(error).__name__])[0]
