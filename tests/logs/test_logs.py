"""A log entry is one line, for people or for programs, whatever its values are."""

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.logger import Logger, LogLevel, LogPublisher, STDLibLogObserver
from twisted.python.failure import Failure

from gateway.config.settings import LogSettings
from gateway.kernel.errors import ConfigurationError
from gateway.logs import StructuredLog
from gateway.logs.entry import Entry
from gateway.logs.formats import TextFormat
from gateway.logs.line_bounds import masked
from gateway.logs.setup import start_logging, stop_logging
from gateway.logs.twisted import with_traceback

NASTY = 'a\nb\r\x1b[31mred\u2028c\x85 d"e'


@pytest.fixture(autouse=True, params=["alone", "beside others"])
def leave_logging_as_it_was(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run each test with the broker's handler alone, which entries reach directly, and beside those of pytest."""
    root = logging.getLogger()
    level = root.level
    if request.param == "alone":
        monkeypatch.setattr(root, "handlers", [])
    yield
    stop_logging()
    root.setLevel(level)


def started(**settings: object) -> io.StringIO:
    stream = io.StringIO()
    start_logging(LogSettings.model_validate(settings), stream)
    return stream


def test_an_entry_in_text_format() -> None:
    stream = started()
    StructuredLog("amqp").info("connection authenticated", peer="127.0.0.1:3456", user="guest", vhost="/")
    line = stream.getvalue()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} info connection authenticated "
        r"peer=127\.0\.0\.1:3456 user=guest vhost=/\n",
        line,
    )


def test_an_entry_in_json_format() -> None:
    stream = started(format="json")
    StructuredLog("amqp").warning("connection closed", peer="::1", channels=3, reason=None)
    entry = json.loads(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert entry == {
        "level": "warning",
        "part": "amqp",
        "event": "connection closed",
        "peer": "::1",
        "channels": 3,
        "reason": None,
    }


VALUES = [("plain", "plain"), (7, "7"), ("", '""'), ("two words", '"two words"'), ("a=b", '"a=b"'), ('"', '"\\""')]


@pytest.mark.parametrize(("value", "written"), VALUES)
def test_values_are_quoted_where_they_would_be_ambiguous(value: object, written: str) -> None:
    stream = started()
    StructuredLog("x").info("event", value=value)
    assert stream.getvalue().endswith(f" event value={written}\n")


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_value_adds_a_second_line_or_a_colour(format: str) -> None:
    stream = started(format=format)
    StructuredLog("x").info(f"event {NASTY}", value=NASTY)
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("name", ["password", "passwd", "default_pass", "client_secret", "access_token", "PassPhrase"])
def test_secrets_are_not_written(format: str, name: str) -> None:
    stream = started(format=format)
    StructuredLog("x").info("event", **{name: "s3cret"})
    assert "s3cret" not in stream.getvalue()


def test_bound_fields_are_in_every_entry() -> None:
    stream = started()
    log = StructuredLog("x").bind(connection="c1").bind(vhost="/")
    log.info("one", vhost="shop")
    log.info("two")
    assert [line.partition(" info ")[2] for line in stream.getvalue().splitlines()] == [
        "one connection=c1 vhost=shop",
        "two connection=c1 vhost=/",
    ]


def test_entries_below_the_level_are_not_written() -> None:
    stream = started(level="warning")
    StructuredLog("x").info("no")
    StructuredLog("x").debug("no")
    StructuredLog("x").error("yes")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_traceback_is_included_and_cannot_be_mistaken_for_an_entry(format: str) -> None:
    stream = started(format=format)
    try:
        raise RuntimeError("broken\n2026-01-01 00:00:00.000 info forged")
    except RuntimeError:
        StructuredLog("x").error("failed", exc_info=True)
    head, *rest = stream.getvalue().splitlines()
    assert "RuntimeError: broken" in stream.getvalue()
    assert all(line.startswith("    ") for line in rest)
    assert bool(rest) is (format == "text")
    assert "failed" in head


def test_records_of_other_libraries_have_the_same_format() -> None:
    stream = started()
    logging.getLogger("other").warning("disk %s", "full")
    assert stream.getvalue().endswith(" warning disk full\n")


def test_twisted_events_are_in_the_log() -> None:
    stream = started()
    log = Logger("test", observer=LogPublisher(STDLibLogObserver()))  # type: ignore[arg-type]  # zope.interface
    log.error("factory {name} failed", name="f")
    assert stream.getvalue().endswith(" error factory f failed\n")


def test_a_log_file_is_reopened_after_it_was_moved(tmp_path: Path) -> None:
    file = tmp_path / "gateway.log"
    start_logging(LogSettings(file=file))
    StructuredLog("x").info("one")
    file.rename(tmp_path / "gateway.log.1")
    StructuredLog("x").info("two")
    assert "one" in (tmp_path / "gateway.log.1").read_text(encoding="utf-8")
    assert "two" in file.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_opened_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"log\.file: must be a file that can be written, not '/"):
        start_logging(LogSettings(file=tmp_path / "none" / "gateway.log"))


def test_starting_again_replaces_the_first_configuration() -> None:
    first, second = started(), started()
    StructuredLog("x").info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_an_event_is_no_format_of_the_standard_library() -> None:
    stream = started()
    StructuredLog("x").info("100 % of %s", value="%d")
    assert stream.getvalue().endswith(" info 100 % of %s value=%d\n")


def test_an_entry_has_the_attributes_of_a_standard_record() -> None:
    entry = Entry("gateway.x", logging.INFO, "event", {"a": 1})
    standard = logging.makeLogRecord({})
    assert set(standard.__dict__) <= set(entry.__dict__)
    written = logging.Formatter("%(asctime)s %(name)s %(levelname)s %(filename)s:%(lineno)d %(message)s").format(entry)
    assert written.endswith(" gateway.x INFO :0 event")


def test_the_time_of_each_line_is_its_own() -> None:
    format, lines = TextFormat(), []
    for created in (1_000_000_000.25, 1_000_000_000.5, 1_000_000_001.0, 1_000_000_000.75):
        entry = Entry("gateway.x", logging.INFO, "event", {})
        entry.created, entry.msecs = created, created % 1 * 1000
        lines.append(format.format(entry).partition(" info ")[0][-6:])
    assert lines == ["40.250", "40.500", "41.000", "40.750"]


# Bounds on what a client can write


@pytest.mark.parametrize("format", ["text", "json"])
def test_the_length_of_a_line_is_bounded(format: str) -> None:
    stream = started(format=format)
    StructuredLog("x").warning("authentication refused", user="u" * 60_000, reason=["r" * 60_000])
    assert len(stream.getvalue()) < 1_500
    assert "59600 more characters" in stream.getvalue()


@pytest.mark.parametrize("format", ["text", "json"])
def test_the_length_of_a_traceback_is_bounded(format: str) -> None:
    stream = started(format=format)

    def deep(depth: int) -> None:
        if not depth:
            raise RuntimeError("r" * 60_000 + "\n" * 10_000)
        deep(depth - 1)

    try:
        deep(400)
    except RuntimeError:
        StructuredLog("x").error("failed", exc_info=True)
    assert len(stream.getvalue()) < 60_000
    assert "more lines" in stream.getvalue()


def test_an_error_that_twisted_reports_has_its_traceback_in_lines_of_its_own() -> None:
    stream = started()
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        event = with_traceback({"failure": Failure(), "why": "reading failed", "log_level": LogLevel.critical})
    STDLibLogObserver()(event)  # type: ignore[operator]  # implemented by zope.interface
    first, *lines = stream.getvalue().splitlines()
    assert first.endswith("critical reading failed")
    assert lines[0] == "    Traceback (most recent call last):"
    assert lines[-1] == "    RuntimeError: broken"


def test_lines_of_one_kind_beyond_the_rate_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = started(lines_per_s=2)
    clock = [1000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    monkeypatch.setattr("time.time_ns", lambda: int(clock[0] * 1e9))
    for number in range(1000):
        StructuredLog("x").info("connection opened", connection=number)
    assert stream.getvalue().count("connection opened") == 20
    clock[0] += 1
    StructuredLog("x").info("connection opened", connection="next")
    assert stream.getvalue().endswith("connection opened connection=next left_out=980\n")


def test_other_kinds_of_lines_are_written_meanwhile() -> None:
    stream = started(lines_per_s=1)
    for _ in range(100):
        StructuredLog("x").info("connection opened")
    StructuredLog("x").info("connection refused")
    StructuredLog("y").info("connection opened")
    assert (stream.getvalue().count("refused"), stream.getvalue().count("opened")) == (1, 11)


def test_lines_about_authenticated_users_are_never_dropped() -> None:
    stream = started(lines_per_s=1)
    for number in range(100):
        StructuredLog("x").info("connection in use", user="guest", connection=number)
        StructuredLog("x").warning("authentication refused", user="guest", connection=number)
    assert (stream.getvalue().count("in use"), stream.getvalue().count("refused")) == (100, 10)


def test_without_a_rate_everything_is_written() -> None:
    stream = started(lines_per_s=0)
    for _ in range(500):
        StructuredLog("x").info("connection opened")
    assert stream.getvalue().count("opened") == 500


@pytest.mark.parametrize(("name", "shown"), [("", ""), ("a", "***"), ("guest", "g***"), ("hunter2-secret", "hu***")])
def test_a_name_that_may_be_a_password_is_masked(name: str, shown: str) -> None:
    assert masked(name) == shown
