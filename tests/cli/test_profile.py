"""``gateway profile``: samples of a broker's stack, as tables or as a file."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pika
import pytest

from gateway.cli.exits import DATA_ERROR, USAGE
from gateway.cli.main import main
from gateway.cli.profile.sampler import Sampler
from gateway.cli.profile.samples import read_samples
from gateway.kernel.errors import ConfigurationError
from gateway_lmdb.disk import owner_of
from tests.interop.amqp_clients.pika_client import parameters
from tests.running import Gateway, gateway_in

STACKS = """\
run (gateway/net/loop.py:1);receive (gateway_amqp/connection.py:3);loads (json/decoder.py:1) 30
run (gateway/net/loop.py:1);receive (gateway_amqp/connection.py:3);publish (gateway/kernel/a.py:9) 50
run (gateway/net/loop.py:1) 10
_worker (concurrent/futures/thread.py:81) 10

py-spy> no sample
"""

#: What py-spy says where the system does not let it read another process.
_FORBIDDEN = "py-spy cannot read process"


def test_samples_are_counted_by_function_and_by_the_part_that_called_it() -> None:
    samples = read_samples(STACKS.splitlines())
    assert samples.total == 100
    assert samples.by_function.most_common(2) == [
        ("publish (gateway/kernel/a.py:9)", 50),
        ("loads (json/decoder.py:1)", 30),
    ]
    assert samples.by_part == {"gateway/kernel": 50, "gateway_amqp": 30, "gateway/net": 10, "elsewhere": 10}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_in(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of py-spy, which writes ``STACKS`` and its own arguments."""
    program, arguments, stacks = tmp_path / "bin" / "py-spy", tmp_path / "arguments", tmp_path / "stacks"
    program.parent.mkdir()
    stacks.write_text(STACKS)
    copies = f'for last; do :; done; echo "$@" > {arguments}; cp {stacks} "$last"\n'
    program.write_text(f"#!/bin/sh\n{copies}")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.parent / "python"))
    return arguments


def test_the_tables_have_shares_of_the_samples_at_work(
    gateway: Gateway, stand_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", "--data", str(gateway.data), "--seconds", "2", "--rate", "200", "--top", "2"]) == 0
    process_id = gateway.child.pid
    assert capsys.readouterr().out.splitlines() == [
        f"process {process_id}: at work in 100 of 400 samples",
        "",
        "  share  part",
        " 50.0 %  gateway/kernel",
        " 30.0 %  gateway_amqp",
        "",
        "  share  function",
        " 50.0 %  publish (gateway/kernel/a.py:9)",
        " 30.0 %  loads (json/decoder.py:1)",
    ]
    given = stand_in.read_text()
    assert given.startswith(
        f"record --gil --function --pid {process_id} --duration 2 --rate 200 --format raw --output "
    )


@pytest.mark.parametrize(("name", "form"), [("graph.svg", "flamegraph"), ("samples.json", "speedscope")])
def test_a_file_is_written_in_the_format_of_its_suffix(
    gateway: Gateway, stand_in: Path, tmp_path: Path, name: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    assert main(["profile", "--data", str(gateway.data), "--output", str(file)]) == 0
    assert capsys.readouterr().out == f"wrote {file}\n"
    assert f"--format {form} --output {file}" in stand_in.read_text()
    assert file.read_text() == STACKS


def test_a_broker_at_work_is_sampled_where_the_system_lets_py_spy_read_it(
    gateway: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = Event()
    publishing = Thread(target=_publish_until, args=(gateway, ended))
    publishing.start()
    code = main(["profile", "--data", str(gateway.data), "--seconds", "2"])
    ended.set()
    publishing.join()
    shown = capsys.readouterr()
    if code == 0:
        taken = re.search(r"of (\d+) samples", shown.out)
        assert taken is not None
        assert 1 <= int(taken[1]) <= 200  # a busy machine takes fewer
        assert "gateway/" in shown.out
    else:
        assert (code, shown.out) == (DATA_ERROR, "")
        assert _FORBIDDEN in shown.err


def _publish_until(gateway: Gateway, ended: Event) -> None:
    with pika.BlockingConnection(parameters(gateway.broker)) as connection:
        channel = connection.channel()
        while not ended.is_set():
            channel.basic_publish("amq.fanout", "", b"x")
            connection.process_data_events(0)


def test_a_failure_of_py_spy_is_one_line(stand_in: Path, tmp_path: Path) -> None:
    program = stand_in.parent / "bin" / "py-spy"
    program.write_text("#!/bin/sh\necho 'Permission Denied'\nexit 1\n")
    with pytest.raises(ConfigurationError, match=r"py-spy cannot read process 7: Permission Denied\. Run"):
        Sampler(7, 100).write(1, tmp_path / "x.svg")


def test_without_py_spy_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"pip install 'gateway-broker\[profile\]'"):
        Sampler(7, 100)


def test_a_directory_without_a_broker_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gateway_in(tmp_path) as gateway:
        assert owner_of(gateway.data) == gateway.child.pid
        gateway.stop()
        assert owner_of(gateway.data) is None
        assert main(["profile", "--data", str(gateway.data)]) == DATA_ERROR
    assert capsys.readouterr().err == f"gateway: no broker runs on {gateway.data}\n"


def test_a_file_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--data", str(tmp_path), "--output", "x.png"]) == DATA_ERROR
    assert capsys.readouterr().err == "gateway: --output: x.png ends neither with .svg nor with .json\n"
    assert main(["profile", "--seconds", "0"]) == USAGE
