"""A Spark session that needs no set-up, says nothing, and fails in one line."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

OLDEST_JAVA = 17
#: So often a task is tried, as on a cluster.
TRIES = 4
#: Seconds that a master may take to be reached.
_REACHED_IN = 10.0

#: What the operating system says of a disk that is full.
_FULL = "No space left on device"

#: The directory that holds the package, so that Spark's Python workers find it also when it is not installed.
ROOT = Path(str(resources.files("amqpspec"))).resolve().parent


#: What is not for Spark, but for what watches it: how long executors may take to come, in seconds.
EXECUTORS_WAIT = "spark.amqpspec.executors.wait"
_EXECUTORS_WAIT = 120.0
#: Seconds that Java has to stop a session, at the end and after a signal.
_STOPPED_IN, _INTERRUPTED_IN = 120.0, 10.0
#: Seconds without an executor after which that is told.
_TOLD_AFTER = 5.0


class PipelineError(Exception):
    """A Spark job could not start or did not end; one line."""


class Master(str):
    """The address of a master, and what is set in sessions on it."""

    settings: Mapping[str, str]

    def __new__(cls, master: str, settings: Mapping[str, str] | None = None) -> Master:
        made = super().__new__(cls, master)
        made.settings = dict(settings or {})
        return made


class _NoExecutors:
    """Why the jobs of this process were given up; "": they were not."""

    why = ""


@contextmanager
def spark_session(master: str) -> Iterator[Any]:
    """A session on `master` ("local[2]", "spark://host:7077", …) that is stopped at the end.

    A session that exists already in this process is used as it is, and left running. A local master talks
    over the loopback interface only. Raises `PipelineError`.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    require_java()
    _require_master(master)
    with tempfile.TemporaryDirectory(prefix="amqpspec-spark-") as directory:
        log = Path(directory) / "spark.log"
        session = _start(master, Path(directory), log)
        if session.sparkContext.uiWebUrl:
            print(f"amqpspec: Spark's page: {session.sparkContext.uiWebUrl}", file=sys.stderr, flush=True)
        seconds = _STOPPED_IN
        try:
            with _watched(session, master):
                yield session
        except KeyboardInterrupt:
            seconds = _INTERRUPTED_IN
            raise
        finally:
            _stop(session, seconds)


def _stop(session: Any, seconds: float) -> None:
    """Stop a session. Java waits for workers that are being started, and those may wait for ever; it is ended then."""
    java = getattr(session.sparkContext._gateway, "proc", None)
    stopping = threading.Thread(target=_stop_quietly, args=(session,), daemon=True)
    stopping.start()
    stopping.join(seconds)
    if stopping.is_alive() and java is not None:
        java.kill()


def _stop_quietly(session: Any) -> None:
    with suppress(Exception):  # Java is gone, and with it what was to be stopped
        session.stop()


@contextmanager
def failing_in_a_line(what: str) -> Iterator[None]:
    """What Spark raises in the block becomes a `PipelineError` that says what has failed."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        if _NoExecutors.why:
            raise PipelineError(f"{what}: {_NoExecutors.why}") from error
        if isinstance(error, PySparkException):
            raise PipelineError(f"{what}: {reason(error)}") from error
        # Py4J's exceptions, without an import that needs it
        if type(error).__module__.startswith("py4j"):
            raise PipelineError(f"{what}: {reason(error)}") from error
        raise


def _start(master: str, directory: Path, log: Path) -> Any:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    given = master.settings if isinstance(master, Master) else {}
    # what workers run is said by the user, where it is another than this; the driver is this process
    python = given.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    os.environ["PYSPARK_PYTHON"], os.environ["PYSPARK_DRIVER_PYTHON"] = python, sys.executable
    # a call that is ended by a signal is told by what ends it
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.executorEnv.PYTHONPATH": path,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_logging(directory)}",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(directory),
            # 200 by default, each a task, which takes longer than all the work of a table
            "spark.sql.shuffle.partitions": "8",
        }
    options = given.get("spark.driver.extraJavaOptions")
    if options is not None:
        given = {**given, "spark.driver.extraJavaOptions": f"{settings['spark.driver.extraJavaOptions']} {options}"}
    settings |= given
    builder = SparkSession.builder.master(_with_retries(master)).appName("amqpspec")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _standard_error_to(log):
            return builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError, ValueError) as error:
        raise PipelineError(f"Spark did not start on {master!r}: {reason(error, log)}") from error
    except Exception as error:
        # Py4J's exceptions, without an import that needs it: what the Java side did not like.
        if type(error).__module__.startswith("py4j"):
            raise PipelineError(f"Spark did not start on {master!r}: {reason(error, log)}") from error
        raise


@contextmanager
def _watched(session: Any, master: str) -> Iterator[None]:
    """While a job has no executor, that is told; after some time it is given up."""
    if master.startswith("local"):
        yield
        return
    settings = master.settings if isinstance(master, Master) else {}
    try:
        seconds = float(settings.get(EXECUTORS_WAIT, _EXECUTORS_WAIT))
    except ValueError:
        raise PipelineError(f"{EXECUTORS_WAIT}={settings[EXECUTORS_WAIT]}: not a number of seconds") from None
    _NoExecutors.why = ""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(session.sparkContext, master, seconds, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(context: Any, master: str, seconds: float, done: threading.Event) -> None:
    since: float | None = None
    is_told = False
    while not done.wait(0.5):
        # the driver is one of them
        lacks = context._jsc.sc().getExecutorMemoryStatus().size() < 2 and context.statusTracker().getActiveJobsIds()
        now = time.monotonic()
        since = (since or now) if lacks else None
        if since is None:
            is_told = False
        elif now - since >= seconds:
            _NoExecutors.why = f"no executor of {master} in {seconds:g} s: has it workers with memory and cores free?"
            context.cancelAllJobs()
            return
        elif now - since >= _TOLD_AFTER and not is_told:
            is_told = True
            print(f"amqpspec: waiting for executors of {master}", file=sys.stderr, flush=True)


def _with_retries(master: str) -> str:
    """A local master that tries a task as often as others do, when a worker was killed: "local[2]" does not."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{found[1] or 1},{TRIES}]" if found else master


def _require_master(master: str) -> None:
    """Raises `PipelineError` if no standalone master answers; Spark itself takes a minute to say so."""
    if master.startswith("sc://"):
        raise PipelineError(
            f"{master}: Spark Connect is not served, as its clients cannot give a worker a function to carry out"
            " without pandas; give the master itself, or start the command beside it"
        )
    if not master.startswith("spark://"):
        return
    problem = "not an address"
    for each in master.removeprefix("spark://").split(","):
        host, _, port = each.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=_REACHED_IN).close()
            return
        except (OSError, ValueError, OverflowError) as error:
            problem = getattr(error, "strerror", None) or str(error)
    raise PipelineError(f"Spark did not start on {master!r}: the master cannot be reached: {problem}")


def _logging(directory: Path) -> str:
    """Only errors, and only to the log: what matters reaches us as an exception."""
    file = directory / "log4j2.properties"
    file.write_text(
        "rootLogger.level = error\n"
        "rootLogger.appenderRef.stderr.ref = stderr\n"
        "appender.stderr.type = Console\n"
        "appender.stderr.name = stderr\n"
        "appender.stderr.target = SYSTEM_ERR\n"
        "appender.stderr.layout.type = PatternLayout\n"
        "appender.stderr.layout.pattern = %p %m%n\n"
    )
    return file.as_uri()


@contextmanager
def _standard_error_to(log: Path) -> Iterator[None]:
    """Java inherits standard error, and greets on it whatever its logging; it gets a file instead."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def require_java() -> None:
    """Raises `PipelineError` if there is no Java, or one that is too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = f"Spark needs Java {OLDEST_JAVA} or later (set JAVA_HOME or PATH)"
    if java is None:
        raise PipelineError(f"{advice}: there is no java on this machine's PATH")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise PipelineError(f"{advice}: {java} does not run") from error
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is not None and int(version[1]) < OLDEST_JAVA:
        raise PipelineError(f"{advice}: {java} is version {version[1]}")


def reason(error: BaseException, log: Path | None = None) -> str:
    """The line of an exception of PySpark or Py4J that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if log is not None and "JAVA_GATEWAY" in str(error) and log.exists():
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] or lines
    # A Python worker's traceback ends in the exception; Java's begins with it.
    python = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit|Interrupt)\b", line)]
    java = [line for line in lines if re.search(r"\b(java|org)(\.\w+)+(Exception|Error)\b", line)]
    if _FULL in str(error) and not python:  # Java says first what it was writing
        return f"{_FULL}, where Spark writes"
    chosen = next(iter([*python[-1:], *java[:1], *lines[-1:]]), type(error).__name__)
    return re.sub(r"^(: |Exception in thread \S+ )?((java|org|amqpspec)(\.\w+)+: )?", "", chosen)
