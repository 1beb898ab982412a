"""Libraries that are not installed: what needs one says so in a line, with what installs it.

`amqpspec.testing` needs pamqp and nothing else, so whoever wants only that may leave out those of the suite
(`pip install --no-deps`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Importable name -> the extra of this package that installs it; "": installed with this package.
_EXTRAS = {
    "pyarrow": "parquet", "duckdb": "parquet", "pyspark": "spark", "py4j": "spark", "dpkt": "capture",
    "obstore": "object-stores", "hdfs_native": "hdfs",
    **dict.fromkeys(("docker", "hypothesis", "jinja2", "junit_xml", "orjson", "pamqp", "rich"), ""),
}  # fmt: skip


class MissingExtra(Exception):
    """Something needs a library that is not installed; one line, which says what installs it."""


@contextmanager
def needed_for(what: str, extra: str | None = None) -> Iterator[None]:
    """Raises `MissingExtra` where an import inside the block lacks a library of an extra.

    `extra`: the one to name, where another than that of the library alone.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRAS:
            raise
        of_extra = _EXTRAS[library] and (extra or _EXTRAS[library])
        package = f"'amqpspec[{of_extra}]'" if of_extra else "amqpspec"
        raise MissingExtra(f"{library} is missing {what}: pip install {package}") from None
