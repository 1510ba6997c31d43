"""Completion scripts of both programs, as the shells use them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.completion import SHELLS
from gateway.cli.ctl.main import main as ctl_main
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
