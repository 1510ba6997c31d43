"""Settings from environment variables: their names, files for secrets, errors of one line."""

from pathlib import Path

import pytest

from gateway.config import load, load_with_origins
from gateway.config.catalogue import settings_by_key
from gateway.config.environment import Variable, variables_in
from gateway.config.loading import COMMAND_LINE, ENVIRONMENT
from gateway.kernel.errors import ConfigurationError


def test_a_variable_is_a_setting_between_the_file_and_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[amqp]\nheartbeat_s = 1\nport = 1\nchannel_max = 1\n")
    environment = {"GATEWAY__AMQP__PORT": "2", "GATEWAY__AMQP__CHANNEL_MAX": "2", "GATEWAY__NODE_NAME": "7"}
    configured = load_with_origins(file, ["amqp.channel_max=3"], environment)
    amqp = configured.settings.amqp
    assert (amqp.heartbeat_s, amqp.port, amqp.channel_max) == (1, 2, 3)
    assert configured.settings.node == "7"
    assert configured.origin_by_key == {
        "amqp.heartbeat_s": str(file),
        "amqp.port": ENVIRONMENT,
        "amqp.channel_max": COMMAND_LINE,
        "node_name": ENVIRONMENT,
    }


def test_other_variables_are_no_settings() -> None:
    assert load(None, (), {"GATEWAY_SERVICE_HOST": "10.0.0.1", "GATEWAY": "x", "AMQP__PORT": "1"}) == load()


@pytest.mark.parametrize(
    ("content", "password"),
    [
        ("0123\n", "0123"),
        ("true", "true"),
        (' "a" \r\n', ' "a" '),
        ("ä\nb", "ä\nb"),
        ("", ""),
        ('"\x7f"', '"\x7f"'),
    ],
)
def test_the_value_of_a_secret_is_the_content_of_a_file(content: str, password: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(content, encoding="utf-8", newline="")
    settings = load(None, (), {"GATEWAY__DEFAULT_PASS_FILE": str(tmp_path / "password")})
    assert settings.default_pass.get_secret_value() == password


def test_each_setting_has_a_variable_and_one_that_names_a_file(tmp_path: Path) -> None:
    (tmp_path / "content").write_text("x\n")
    for key in settings_by_key():
        name = "GATEWAY__" + key.upper().replace(".", "__")
        assert list(variables_in({name: "x"})) == [Variable(name, key, "x", False)]
        from_file = f"{name}_FILE"
        assert list(variables_in({from_file: str(tmp_path / "content")})) == [Variable(from_file, key, "x", True)]


def test_the_file_of_the_log_is_a_setting(tmp_path: Path) -> None:
    log = tmp_path / "gateway.log"
    log.write_text("lines of an earlier start\n")
    assert load(None, (), {"GATEWAY__LOG__FILE": str(log)}).log.file == log


def test_a_number_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("5673\n")
    assert load(None, (), {"GATEWAY__AMQP__PORT_FILE": str(tmp_path / "port")}).amqp.port == 5673


def test_the_content_of_a_file_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    with pytest.raises(ConfigurationError) as refused:
        load(None, (), {"GATEWAY__AMQP__PORT_FILE": str(tmp_path / "password")})
    assert "GATEWAY__AMQP__PORT_FILE: amqp.port: must be a port" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_setting_is_given_once(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    both = {"GATEWAY__DEFAULT_PASS": "a", "GATEWAY__DEFAULT_PASS_FILE": str(tmp_path / "password")}
    with pytest.raises(ConfigurationError) as refused:
        load(None, (), both)
    assert str(refused.value) == "GATEWAY__DEFAULT_PASS_FILE: GATEWAY__DEFAULT_PASS gives the same setting"


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("GATEWAY__AMQP__HEARTBEATS", "3", "amqp.heartbeats: no such setting; did you mean amqp.heartbeat_s?"),
        ("GATEWAY__AMQP__HEARTBEAT_S", "x", "amqp.heartbeat_s: must be a whole number from 0 to 65535, not 'x'"),
        ("GATEWAY__DEFAULT_PASS_FILE", "/absent", "/absent: cannot be read: No such file or directory"),
        ("GATEWAY__DEFAULT_PASS_FILE", "/", "/: cannot be read: Is a directory"),
        ("GATEWAY__", "a", "not of the form GATEWAY__SECTION__KEY, like GATEWAY__AMQP__PORT"),
        (
            "GATEWAY__VHOSTS__A__TRACING",
            "true",
            "settings of virtual hosts have no variables, because case matters in names",
        ),
        ("GATEWAY____A", "a", "not of the form GATEWAY__SECTION__KEY, like GATEWAY__AMQP__PORT"),
    ],
)
def test_an_error_names_the_variable(name: str, value: str, error: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(None, (), {name: value})
    assert str(refused.value) == f"{name}: {error}"


def test_a_file_that_is_no_text_is_an_error_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"password: not UTF-8$"):
        load(None, (), {"GATEWAY__DEFAULT_PASS_FILE": str(tmp_path / "password")})
