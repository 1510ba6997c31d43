"""``python -m gateway_spark``: the process that ``gateway pipeline`` starts, because the broker does not import
Spark.
"""

import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from gateway_spark.address import CONNECTIONS, addresses_of
from gateway_spark.brokers import Brokers
from gateway_spark.catalogue import BY_NAME, ENTRIES
from gateway_spark.choices import master, read, shown
from gateway_spark.errors import OptionError, PipelineError
from gateway_spark.given import Given
from gateway_spark.prerequisites import missing, missing_packages
from gateway_spark.status import described
from gateway_spark.submitting import submit
from gateway_spark.usage import USAGE, UsageParser

FAILED: Final = 1

UNAVAILABLE: Final = 69


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process; return the exit code."""
    options = parser().parse_args(arguments)
    try:
        return _VERBS[options.verb](options)
    except PipelineError as error:
        print(f"gateway pipeline: {error}", file=sys.stderr)
        return USAGE if isinstance(error, OptionError) else FAILED


def _list(options: Namespace) -> int:
    """List the jobs."""
    for entry in ENTRIES:
        print(f"{entry.name:<14}{entry.summary}")
    return 0


def _run(options: Namespace) -> int:
    """Run a job in this process."""
    lacking = missing(options.arguments)
    if lacking is not None:
        return _lacking(lacking)
    from gateway_spark.jobs.running import main as run  # imports pyspark

    return run(BY_NAME[options.job].load(), options.arguments)


def _submit(options: Namespace) -> int:
    """Run a job with spark-submit."""
    lacking = missing()
    if lacking is not None:
        return _lacking(lacking)
    where = read("--master", options.master, master, shown)
    if where.startswith("sc://"):
        raise OptionError("spark-submit does not know sc://: use gateway pipeline run --master")
    return submit(BY_NAME[options.job], where, options.deploy_mode, options.conf, options.arguments)


def _status(options: Namespace) -> int:
    """Print the progress of queries."""
    brokers = None
    if any(each is not None for each in (options.url, options.urls, options.brokers)):
        names = {name: name for name in ("url", "urls", "brokers", "vhost", "username")}
        names |= {"passwordFile": "password_file", "passwordEnv": "password_env"}
        given = {name: getattr(options, word) for name, word in names.items() if getattr(options, word) is not None}
        brokers = Brokers(addresses_of(Given({"retryTimeout": "5s", **given}, CONNECTIONS)))
    for checkpoint in options.checkpoint:
        for line in described(checkpoint, brokers):
            print(line)
    return 0


def _plot(options: Namespace) -> int:
    """Write the report of a run again from its tables."""
    lacking = missing_packages()
    if lacking is not None:
        return _lacking(lacking)
    from gateway_spark.jobs.outputs import Outputs
    from gateway_spark.jobs.reporting import noted, write_report

    for directory in options.directory:
        job = BY_NAME[noted(directory)["job"]].load()
        print(write_report(job, Outputs(directory)))
    return 0


def _lacking(what: str) -> int:
    print(f"gateway pipeline: {what}", file=sys.stderr)
    return UNAVAILABLE


def parser() -> ArgumentParser:
    """Return the parser of the command line; each job parses its own options."""
    reader = UsageParser(prog="gateway pipeline", description="Jobs on the messages of streams and of the archive.")
    verbs = reader.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("list", help="list the jobs")
    run = verbs.add_parser("run", help="run a job; gateway pipeline run JOB --help lists its options")
    _add_job(run)
    submitting = verbs.add_parser("submit", help="run a job on a cluster with spark-submit")
    submitting.add_argument("--master", required=True, metavar="URL", help="spark://host:port, yarn, k8s://... ")
    submitting.add_argument("--deploy-mode", choices=("client", "cluster"), default="client", help="(default: client)")
    conf_help = "a setting of Spark (repeat)"
    submitting.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help=conf_help)
    _add_job(submitting)
    status = verbs.add_parser("status", help="print the progress of streaming queries, without starting Spark")
    status.add_argument("checkpoint", nargs="+", type=Path, metavar="CHECKPOINT", help="the directory of a query")
    status.add_argument("--url", help="the broker's management port, to show the lag")
    status.add_argument("--urls", metavar="URL,URL", help="instead: the management ports of a cluster's nodes")
    status.add_argument("--brokers", metavar="JSON", help="instead: the brokers of a query that reads from several")
    status.add_argument("--vhost", help="the virtual host (default: /)")
    status.add_argument("--username", help="the user (default: guest)")
    status.add_argument("--password-file", metavar="FILE", help="the file with the password")
    status.add_argument("--password-env", metavar="NAME", help="the environment variable with the password")
    plot = verbs.add_parser("plot", help="write the report of a run again from its tables")
    plot.add_argument("directory", nargs="+", type=Path, metavar="DIR", help="the directory with a job's results")
    return reader


def _add_job(parser: ArgumentParser) -> None:
    parser.add_argument("job", choices=list(BY_NAME), metavar="JOB", help=", ".join(BY_NAME))
    parser.add_argument("arguments", nargs=REMAINDER, metavar="...", help="options of the job")


_VERBS: Final[Mapping[str, Callable[[Namespace], int]]] = {
    "list": _list,
    "run": _run,
    "submit": _submit,
    "status": _status,
    "plot": _plot,
}

if __name__ == "__main__":
    sys.exit(main())
