"""Options of the JVMs of all tests: those of drivers, of executors, and of the daemons of a standalone cluster."""

import os
from collections.abc import Mapping
from typing import Final

#: A JVM of the tests runs most of its code once, so optimising it costs more than it gains. With this compiler the code
#: cache has a fifth of its usual size, which the tests fill, so that methods would be compiled again and again. The
#: 14,000 classes that a driver loads are those of Spark's release, so they are not verified again in each JVM.
OPTIONS: Final = " ".join(
    (
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:ReservedCodeCacheSize=240m",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:-BytecodeVerificationRemote",
    )
)

#: The environment in which Spark's scripts start each JVM with these options; spark-submit runs the driver.
ENVIRONMENT: Final[Mapping[str, str]] = {
    "SPARK_SUBMIT_OPTS": OPTIONS,
    "SPARK_DAEMON_JAVA_OPTS": OPTIONS,
    "SPARK_LAUNCHER_OPTS": OPTIONS,
}

#: A setting of Spark: an executor does not have the environment of its daemon.
FOR_EXECUTORS: Final = f"spark.executor.extraJavaOptions={OPTIONS}"


def use_options() -> None:
    """Let all JVMs that this process or its children start have the options."""
    os.environ.update(ENVIRONMENT)
