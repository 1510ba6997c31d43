"""``python -m gateway.cli.ctl`` is ``gatewayctl``."""

import sys

from gateway.cli.ctl.main import main

if __name__ == "__main__":
    sys.exit(main())
