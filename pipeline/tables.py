"""Tables of what was found: each a function of a DataFrame of judgements that gives a DataFrame.

`judgements` is a row for each sequence (docs/pipeline.md): `pipeline.views.read_judgements` makes it of a store, and
any part of it may be given as well, such as `judgements.where("day >= '2026-11-01'")`. Sequences that only repeat or
shorten others (`repeats`) belong to no count but that of `flaky`.
"""

from __future__ import annotations

from typing import Any

from amqpspec.model.promises.registry import requirements

#: A `pyspark.sql.DataFrame`; this module is imported without PySpark as well.
DataFrame = Any

#: What tells one broker from another.
BROKER = ("target", "product", "version", "dialect")
#: The worst first.
VERDICTS = ("fail", "inconclusive", "pass", "not exercised", "not applicable")
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


def counted(judgements: DataFrame) -> DataFrame:
    """The sequences that count: those that repeat others do not, nor those that could not be read or judged."""
    return judgements.where("repeats is null and problem is null")


def said(judgements: DataFrame) -> DataFrame:
    """A row for each sequence and requirement that it says something about: `requirement`, `verdict`, `as_known`,
    `exercised`, with day, run, broker and `sequence`."""
    from pyspark.sql import functions as f

    return (
        counted(judgements)
        .select("day", "run", *BROKER, "sequence", f.explode("said").alias("said"))
        .select("day", "run", *BROKER, "sequence", "said.*")
    )


def failures(judgements: DataFrame) -> DataFrame:
    """A row for each sequence and distinct failure of it, with day, run, broker and `sequence`."""
    from pyspark.sql import functions as f

    return (
        counted(judgements)
        .select("day", "run", *BROKER, "sequence", f.explode("failures").alias("failure"))
        .select("day", "run", *BROKER, "sequence", "failure.*")
    )


def measurements(judgements: DataFrame) -> DataFrame:
    """A row for each time that was up and seen to be acted on, with day, run, broker and `sequence`."""
    from pyspark.sql import functions as f

    return (
        counted(judgements)
        .select("day", "run", *BROKER, "sequence", f.explode("measurements").alias("measured"))
        .select("day", "run", *BROKER, "sequence", "measured.*")
    )


def compliance(judgements: DataFrame) -> DataFrame:
    """Requirement × broker × day: the verdict, the one as the broker is known, and how many sequences said which.

    `verdict` is the worst of all sequences' (fail, inconclusive, pass, not exercised, not applicable).
    """
    from pyspark.sql import functions as f

    of_verdict = [
        f.sum((f.col("verdict") == verdict).cast("long")).alias(verdict.replace(" ", "_")) for verdict in VERDICTS
    ]
    return (
        said(judgements)
        .where("requirement != ''")
        .groupBy("requirement", *BROKER, "day")
        .agg(
            _worst("verdict"),
            _worst("as_known"),
            f.count("*").alias("sequences"),
            f.sum("exercised").alias("exercised"),
            *of_verdict,
        )
        .orderBy("requirement", *BROKER, "day")
    )


def coverage(judgements: DataFrame) -> DataFrame:
    """Requirement × broker: in how many sequences it made a difference, and how often; 0 for those that never did.

    Every requirement of the registry has a row for every broker, whether its dialect has it or not.
    """
    from pyspark.sql import functions as f

    registry = [(one.id, str(one.level)) for one in requirements().values()]
    every = judgements.sparkSession.createDataFrame(registry, "requirement string, level string")
    made = (
        said(judgements)
        .where("exercised > 0")
        .groupBy("requirement", *BROKER)
        .agg(f.count("*").alias("sequences"), f.sum("exercised").alias("exercised"))
    )
    brokers = judgements.select(*BROKER).distinct()
    return (
        every.crossJoin(brokers)
        .join(made, ["requirement", *BROKER], "left")
        .fillna(0, ["sequences", "exercised"])
        .orderBy("requirement", *BROKER)
    )


def failures_by_identity(judgements: DataFrame) -> DataFrame:
    """Identity of a failure × target: when it was first and last seen, in how many sequences and runs, and one of them.

    `versions`: those of the broker that showed it; `as_known`: a known defect of each of them explains it.
    """
    from pyspark.sql import functions as f

    example = f.struct("day", "run", "sequence", "command", "observed", "allowed", "state")
    return (
        failures(judgements)
        .groupBy("identity", "requirement", "defect", "strength", "target")
        .agg(
            f.bool_and("as_known").alias("as_known"),
            f.sort_array(f.collect_set("version")).alias("versions"),
            f.min("day").alias("first_seen"),
            f.max("day").alias("last_seen"),
            f.countDistinct("run").alias("runs"),
            f.count("*").alias("sequences"),
            f.min(example).alias("example"),
        )
        .select("*", "example.run", "example.sequence", "example.command", "example.observed")
        .drop("example")
        .orderBy("identity", "target")
    )


def latency(judgements: DataFrame) -> DataFrame:
    """What × broker × day: percentiles in seconds of how long it took.

    `what` is "confirm" (publish to acknowledgement), "first delivery" (publish to delivery), or "timeout" (by how much
    the broker was late, at most, where a time was up; negative: early). The first two are exact to three digits.
    """
    from pyspark.sql import functions as f

    keys = ("what", *BROKER, "day")
    timed = (
        counted(judgements)
        .select("day", *BROKER, f.explode("latencies").alias("latency"))
        .select("latency.what", *BROKER, "day", "latency.seconds", "latency.times")
    )
    late = measurements(judgements).select(
        f.lit("timeout").alias("what"), *BROKER, "day", f.col("most").alias("seconds"), f.lit(1).alias("times")
    )
    wanted = ", ".join(map(str, PERCENTILES.values()))
    return (
        timed.unionByName(late)
        .groupBy(*keys)
        .agg(
            f.sum("times").alias("times"),
            f.expr(f"percentile(seconds, array({wanted}), times)").alias("found"),
            f.max("seconds").alias("most"),
        )
        .select(*keys, "times", *(f.col("found")[n].alias(name) for n, name in enumerate(PERCENTILES)), "most")
        .orderBy(*keys)
    )


def flaky(judgements: DataFrame) -> DataFrame:
    """Failures that the same commands showed at one time and not at another, with their rate.

    Sequences are the same where target, version, dialect and planned commands are, whatever their runs and names;
    repetitions count here. `failed` of `tried` sequences showed the failure; `rate` is `failed` divided by `tried`.
    One that something else ended before is not among the tried ones.
    """
    from pyspark.sql import functions as f

    keys = (*BROKER, "commands")
    # recordings of applications have no commands, so none of them is another's repetition
    decided = judgements.where(
        "problem is null and verdict in ('pass', 'fail', 'not exercised') and coalesce(mode, '') != 'open'"
    )
    whole = decided.where("ended_by is null").groupBy(*keys).agg(f.count("*").alias("whole"))
    failed = (
        decided.select(*keys, "day", "run", "sequence", "ended_by", f.explode("failures.identity").alias("identity"))
        .groupBy(*keys, "identity")
        .agg(
            f.count("*").alias("failed"),
            f.count("ended_by").alias("ended"),
            f.min(f.struct("day", "run", "sequence")).alias("example"),
        )
    )
    return (
        failed.join(whole, list(keys))
        .withColumn("tried", f.col("whole") + f.col("ended"))
        .where("failed < tried")
        .select("identity", *keys, "failed", "tried", (f.col("failed") / f.col("tried")).alias("rate"), "example.*")
        .orderBy("identity", *keys)
    )


def difference(judgements: DataFrame, before: str, after: str) -> DataFrame:
    """What is not the same in two runs: `what` is "requirement", with both verdicts, or "failure", seen or not seen.

    A requirement that one of the runs says nothing about is null there.
    """
    from pyspark.sql import functions as f

    def of(run: str, column: str) -> tuple[DataFrame, DataFrame]:
        chosen = judgements.where(f.col("run") == run)
        verdicts = (
            said(chosen)
            .where("requirement != ''")
            .groupBy(f.lit("requirement").alias("what"), f.col("requirement").alias("name"))
            .agg(_worst("verdict", column))
        )
        seen = failures(chosen).select(f.lit("failure").alias("what"), f.col("identity").alias("name")).distinct()
        return verdicts, seen.withColumn(column, f.lit("seen"))

    (verdicts, seen), (verdicts_after, seen_after) = of(before, "before"), of(after, "after")
    keys = ["what", "name"]
    of_failures = seen.join(seen_after, keys, "full").fillna("not seen", ["before", "after"])
    return (
        verdicts.join(verdicts_after, keys, "full")
        .unionByName(of_failures)
        .where("not before <=> after")
        .orderBy("what", "name")
    )


def _worst(column: str, name: str | None = None) -> Any:
    """The worst of the verdicts in a column."""
    from pyspark.sql import functions as f

    order = f.array(*map(f.lit, VERDICTS))
    return f.element_at(order, f.min(f.array_position(order, f.col(column))).cast("int")).alias(name or column)
