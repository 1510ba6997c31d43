"""Completion scripts of both programs, as the shells use them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.completion import SHELLS
from gateway.cli.ctl.main import main as ctl_main
from gateway.cli.example_help import commands_of
from gateway.cli.main import EXAMPLES, gateway
from gateway.cli.main import main as gateway_main

BIN = Path(sys.executable).parent


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ctl_main(["completion", shell]) == 0
    assert "_GATEWAYCTL_COMPLETE" in capsys.readouterr().out
    assert gateway_main(["completion", shell]) == 0
    assert "_GATEWAY_COMPLETE" in capsys.readouterr().out


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert ctl_main(["completion", "csh"]) == 64
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "words", "expected"),
    [
        ("gatewayctl", "gatewayctl list_que", ["list_queues"]),
        ("gatewayctl", "gatewayctl list_queues --forma", ["--formatter"]),
        ("gatewayctl", "gatewayctl list_queues --formatter js", ["json"]),
        ("gatewayctl", "gatewayctl plugin enab", ["enable"]),
        ("gateway", "gateway ru", ["run"]),
    ],
)
def test_bash_completes_verbs_options_and_values(program: str, words: str, expected: list[str]) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = f"""
        PATH={BIN}:$PATH
        eval "$({program} completion bash)"
        COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _{program}_completion {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == expected, done.stderr


def test_autocomplete_lists_verbs_as_rabbitmqctl_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert ctl_main(["autocomplete", "list_mq"]) == 0
    assert capsys.readouterr().out == "list_mqtt_connections\n"


@pytest.mark.parametrize("name", [name for name, _ in commands_of(gateway)])
def test_the_help_of_each_command_of_gateway_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert EXAMPLES[name].startswith(name.partition(" ")[0])
    if name != "pipeline":  # the child prints that help
        assert gateway_main([*name.split(), "--help"]) == 0
        assert f"gateway {EXAMPLES[name]}" in capsys.readouterr().out


def test_the_help_says_what_the_program_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert gateway_main(["--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for word in ("AMQP 0-9-1", "MQTT 3.1, 3.1.1 and 5", "STOMP 1.0 to 1.2", "TLS", "WebSocket", "gatewayctl"):
        assert word in printed
