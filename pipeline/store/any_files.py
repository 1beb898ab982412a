"""Where the files of a store may be: in a folder, or at an address."""

from __future__ import annotations

from pathlib import Path

from amqpspec.conformance.traces.local_path import is_served, not_served
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.hdfs_files import HdfsFiles
from amqpspec.pipeline.store.local_files import LocalFiles
from amqpspec.pipeline.store.object_files import ObjectFiles

#: They are read and written by way of the local disk.
AddressedFiles = ObjectFiles | HdfsFiles
Files = LocalFiles | AddressedFiles


def files_at(url: str) -> AddressedFiles:
    """The files at an address that is served."""
    return HdfsFiles(url) if url.startswith("hdfs:") else ObjectFiles(url)


def files_of(place: Path | str) -> Files:
    """The files in a folder or at an address. Raises `StoreError` for an address that is not served."""
    if is_served(place):
        return files_at(str(place))
    problem = not_served(place)
    if problem is not None:
        raise StoreError(problem)
    return LocalFiles(Path(place))
