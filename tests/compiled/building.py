"""Running make, and the directory of the compiled packages."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILED = ROOT / ".compiled"


def make(*words: str, **environment: str) -> str:
    """Run make; return its output."""
    done = subprocess.run(
        ("make", *words), cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout
