"""/pipeline-runs: the latest runs of pipeline jobs, with their reports. RabbitMQ has no such resource.

Reports may contain messages of any virtual host, so only administrators read them.
"""

from collections.abc import Generator
from typing import Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.downloads import Download, Extent
from gateway.management.http.errors import missing
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.pipeline.job_results import JobResult, JobResults

routes = Routes()

_LEVEL: Final = AccessLevel.ADMINISTRATOR

#: What ``run.json`` has, besides the figures.
_NOTED: Final = ("job", "started", "finished", "options", "figures", "warnings")

#: The digest of the one script that a report may run, which lets readers zoom into its plots.
REPORTS_SCRIPT: Final = "sha256-uqenSATBdCwTkYKy2qBA6HekF+n/1WlOoPKt1L45POY="

#: A report runs no other script, has no origin (so it cannot send requests with the user's session) and loads nothing.
_REPORT: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        f"sandbox allow-scripts; default-src 'none'; script-src '{REPORTS_SCRIPT}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


@routes.get("/pipeline-runs", level=_LEVEL)
def runs(call: Call) -> LongTask:
    """List the latest run of each job, from the directory of the setting pipeline.results_dir."""
    return LongTask(_listed(call.context.pipeline.job_results))


@routes.get("/pipeline-runs/<name>", level=_LEVEL)
def run(call: Call, name: str) -> Fields:
    """Return a run."""
    found = call.context.pipeline.job_results.find(name)
    if found is None:
        raise missing()
    return _view(found)


@routes.get("/pipeline-runs/<name>/report", level=_LEVEL)
def report(call: Call, name: str) -> Download:
    """Return the report of a run, an HTML page whose only script lets readers zoom into plots."""
    path = call.context.pipeline.job_results.report(name)
    download = None if path is None else Download.of_file(path, [Extent(0, path.stat().st_size)], b"", _REPORT)
    if download is None:
        raise missing()
    return download


def _listed(job_results: JobResults) -> Generator[None, None, list[Fields]]:
    found = yield from job_results.listed()
    return [_view(each) for each in found]


def _view(run: JobResult) -> Fields:
    noted = {name: run.noted[name] for name in _NOTED if name in run.noted}
    return {"name": run.name, "report_bytes": run.report_bytes, "error": run.error, **noted}
