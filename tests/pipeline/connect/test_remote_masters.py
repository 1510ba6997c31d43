"""A server of Spark Connect as the master: mistakes that need no server."""

import socket
from contextlib import suppress

import pyspark
import pytest

from gateway_spark import masters, prerequisites
from gateway_spark.__main__ import main
from gateway_spark.choices import shown
from gateway_spark.errors import OptionError, PipelineError, Unreachable
from gateway_spark.masters import require_master
from gateway_spark.remote import require_version
from tests.ports import HOST, free_port


def test_an_absent_server_is_named_without_its_token() -> None:
    port = free_port()
    with pytest.raises(Unreachable, match=f"^no Spark Connect server answers at sc://127.0.0.1:{port}$"):
        require_master(f"sc://127.0.0.1:{port}/;token=secret")


def test_what_speaks_another_protocol_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masters, "HANDSHAKE_S", 0.5)
    with socket.create_server((HOST, 0)) as silent:
        url = f"sc://{HOST}:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"^what answers at {url} is no Spark Connect server, or only one side"):
            require_master(f"{url}/;token=secret")


def test_a_parameter_without_a_value_is_refused() -> None:
    with socket.create_server((HOST, 0)) as silent, pytest.raises(OptionError, match=r"'--master'.* Parameter 'foo'"):
        require_master(f"sc://{HOST}:{silent.getsockname()[1]}/;foo")


@pytest.mark.parametrize("url", ["sc://", "sc://a b", "sc://host:port", "sc://host:1/path"])
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(OptionError, match="option '--master' must be sc://host:port/;name=value, not 'sc://"):
        require_master(url)


def test_a_token_is_not_shown() -> None:
    assert shown("sc://host:1/;token=secret") == "sc://host:1"
    assert shown("sc://host:1;token=secret") == "sc://host:1"
    assert shown("spark://host:1") == "spark://host:1"


@pytest.mark.parametrize(
    "words", [["run", "rollup", "--queue", "q", "--field", "$.t"], ["submit", "rollup", "--", "--field", "$.t"]]
)
@pytest.mark.parametrize("url", ["sc:/host:1/;token=secret", "SC://host:1;token=secret", "sc ://host:1/;token=secret"])
def test_a_token_of_an_invalid_url_is_not_shown(url: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    verb, *rest = words
    with suppress(SystemExit):
        main([verb, "--master", url, *rest] if verb == "submit" else [*words, "--master", url])
    printed = capsys.readouterr().err
    assert "--master" in printed
    assert "secret" not in printed


def test_a_server_of_another_version_is_refused() -> None:
    require_version(pyspark.__version__)
    with pytest.raises(PipelineError, match=r"^the server has Spark 3\.5\.1, and PySpark here is .*: install the same"):
        require_version("3.5.1")


def test_a_remote_run_needs_further_packages_and_no_java(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = prerequisites.find_spec
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    for words in (["--master", "sc://127.0.0.1:1"], ["--master=sc://127.0.0.1:1"]):
        assert prerequisites.missing(words) is None
        with monkeypatch.context() as patched:
            patched.setattr(prerequisites, "find_spec", lambda name: None if name == "grpc" else real(name))
            assert main(["run", "rollup", *words]) == 69
        assert capsys.readouterr().err.startswith("gateway pipeline: the pipeline needs grpc: pip install")


def test_spark_submit_does_not_know_such_a_master(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--master", "sc://host:1", "rollup", "--field", "$.t"]) == 64
    assert "spark-submit does not know sc://: use gateway pipeline run --master" in capsys.readouterr().err
