"""``gateway pipeline``: a child process with one-line errors, and a list of jobs without prerequisites."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway_spark import prerequisites
from gateway_spark.__main__ import main
from gateway_spark.catalogue import ENTRIES, JobEntry
from gateway_spark.submitting import command

ROOT = Path(__file__).parents[2]


def gateway(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    shelves = [str(ROOT / shelf) for shelf in (".", "protocols", "storage", "plugins", "pipeline")]
    paths = {"PYTHONPATH": os.pathsep.join(shelves)}
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        env=os.environ | paths | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_list_names_all_jobs_and_needs_no_spark() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None; from gateway_spark.__main__ import main; sys.exit(main(['list']))"
    )
    shelf = {"PYTHONPATH": str(ROOT / "pipeline")}
    listed = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | shelf, capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [entry.name for entry in ENTRIES]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_listed_job_can_be_loaded(entry: JobEntry) -> None:
    job = entry.load()
    assert job.name == entry.name
    assert entry.file.is_file()
    assert 'if __name__ == "__main__":' in entry.file.read_text()


def test_the_command_passes_arguments_and_the_exit_code() -> None:
    listed = gateway("pipeline", "list")
    assert listed.returncode == 0
    assert listed.stdout.startswith("rollup ")
    wrong = gateway("pipeline", "run", "nonsense")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (64, 1)
    assert gateway("pipeline", "--help").stdout.startswith("usage: gateway pipeline")
    assert gateway("pipeline").stdout == gateway("pipeline", "--help").stdout


def test_without_java_one_line_tells_how_to_install_it() -> None:
    ended = gateway("pipeline", "run", "compact", "--archive", "x", JAVA_HOME="/nonexistent")
    assert ended.returncode == 69
    (line,) = ended.stderr.splitlines()
    assert line.startswith(
        "gateway pipeline: Spark needs Java 17 or newer, and JAVA_HOME, /nonexistent, has none: apt-get"
    )


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for version, lacks in (("1.8.0_392", True), ("11.0.2", True), ("17.0.15", False), ("21", False)):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\n")
        java.chmod(0o755)
        assert (prerequisites.missing_java() is not None) is lacks, version


@pytest.mark.parametrize("package", prerequisites.PACKAGES)
def test_without_a_package_one_line_tells_how_to_install_it(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = prerequisites.find_spec
    monkeypatch.setattr(prerequisites, "find_spec", lambda name: None if name == package else real(name))
    for arguments in (["run", "rollup"], ["submit", "--master", "x", "rollup"], ["plot", "x"]):
        assert main(arguments) == 69
        line = f"gateway pipeline: the pipeline needs {package}: pip install 'gateway-broker[spark]'"
        assert capsys.readouterr().err.startswith(line)


def test_submit_passes_the_file_and_its_options_to_spark_submit() -> None:
    entry = ENTRIES[0]
    words = command(entry, "spark://host:7077", "client", ["spark.executor.cores=1"], ["--field", "$.t"])
    assert words[0].endswith("bin/spark-submit")
    assert Path(words[0]).is_file()
    assert words[1:5] == ["--master", "spark://host:7077", "--deploy-mode", "client"]
    assert words[-3:] == [str(entry.file), "--field", "$.t"]
    assert "spark.executor.cores=1" in words
    assert "spark.sql.python.filterPushdown.enabled=true" in words


def test_submit_refuses_an_invalid_master(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--master", "host:7077", "rollup", "--field", "$.t"]) == 64
    told = "option '--master' must be local[N], spark://host:port, sc://host:port, yarn or k8s://..., not 'host:7077'"
    assert told in capsys.readouterr().err


def test_plot_writes_the_report_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = '{"job": "compact", "started": "2024-01-01T00:00:00", "finished": "2024-01-01T00:00:09",'
    (tmp_path / "run.json").write_text(
        run + ' "options": {"small": 32}, "figures": {"days": 0}, "warnings": ["<odd>"]}'
    )
    assert main(["plot", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"
    page = (tmp_path / "report.html").read_text()
    assert "The archive is empty" in page
    assert "&lt;odd&gt;" in page
    assert main(["plot", str(tmp_path / "absent")]) == 64


PACKAGES = ["gateway", "protocols", "storage", "plugins"]
SPARKS = {"pyspark", "gateway_spark", "pyspark_gateway", "pandas", "matplotlib"}


@pytest.mark.parametrize("shelf", PACKAGES)
def test_the_broker_imports_nothing_of_spark(shelf: str) -> None:
    for file in (ROOT / shelf).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & SPARKS, file


def test_the_pipeline_imports_nothing_of_the_broker() -> None:
    ours = {"gateway", "gateway_amqp", "gateway_mqtt", "gateway_stomp", "gateway_memory", "gateway_lmdb"}
    starts_brokers = ROOT / "pipeline" / "examples" / "cluster.py"
    for file in {*(ROOT / "pipeline").rglob("*.py")} - {starts_brokers}:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & ours, file
