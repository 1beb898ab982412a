"""One Spark session for all tests of the pipeline: it takes seconds to start."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.pipeline.spark_session import spark_session


@pytest.fixture(scope="session")
def spark() -> Any:
    with spark_session("local[2]") as session:
        yield session
