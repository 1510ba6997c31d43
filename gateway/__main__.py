"""Entry point of ``python -m gateway``, the same as the command ``gateway``."""

import sys

from gateway.cli.main import main

sys.exit(main())
