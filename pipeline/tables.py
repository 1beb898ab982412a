"""Tables of what was found: each a function of judgements that gives a table.

`judgements` is a row for each sequence (docs/pipeline.md): `pipeline.views.read_judgements` makes it of a store, and
any part of it may be given as well. It is a relation of DuckDB, such as `judgements.filter("day >= '2026-11-01'")`, or
a DataFrame of Spark; the table is one of the same kind. Each is one text of SQL that both understand. Sequences that
only repeat or shorten others (`repeats`) belong to no count but those of `flaky` and `regressed`.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from amqpspec.model.promises.registry import requirements

#: A `duckdb.DuckDBPyRelation` or a `pyspark.sql.DataFrame`; this module is imported without either as well.
DataFrame = Any

#: What tells one broker from another.
BROKER = ("target", "product", "version", "dialect")
#: The worst first.
VERDICTS = ("fail", "inconclusive", "pass", "not exercised", "not applicable")
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}

_BROKER = ", ".join(BROKER)
#: Sequences that the same commands may show anything in: recordings of applications have no commands.
_DECIDED = (
    "problem IS NULL AND verdict IN ('pass', 'fail', 'not exercised') AND coalesce(mode, '') <> 'open'"
)


def counted(judgements: DataFrame) -> DataFrame:
    """The sequences that count: those that repeat others do not, nor those that could not be read or judged."""
    return judgements.filter("repeats IS NULL AND problem IS NULL")


def said(judgements: DataFrame) -> DataFrame:
    """A row for each sequence and requirement that it says something about: `requirement`, `verdict`, `as_known`,
    `exercised`, with day, run, broker and `sequence`."""
    return _asked(judgements, _each("said"))


def failures(judgements: DataFrame) -> DataFrame:
    """A row for each sequence and distinct failure of it, with day, run, broker and `sequence`."""
    return _asked(judgements, _each("failures"))


def measurements(judgements: DataFrame) -> DataFrame:
    """A row for each time that was up and seen to be acted on, with day, run, broker and `sequence`."""
    return _asked(judgements, _each("measurements"))


def compliance(judgements: DataFrame) -> DataFrame:
    """Requirement × broker × day: the verdict, the one as the broker is known, and how many sequences said which.

    `verdict` is the worst of all sequences' (fail, inconclusive, pass, not exercised, not applicable).
    """
    of_verdict = ", ".join(
        f"count(*) FILTER (WHERE verdict = '{verdict}') AS {verdict.replace(' ', '_')}" for verdict in VERDICTS
    )
    return _asked(
        judgements,
        f"""
        WITH said AS ({_each("said")})
        SELECT requirement, {_BROKER}, day, {_worst("verdict")}, {_worst("as_known")}, count(*) AS sequences,
               CAST(sum(exercised) AS BIGINT) AS exercised, {of_verdict}
        FROM said WHERE requirement <> ''
        GROUP BY requirement, {_BROKER}, day
        ORDER BY {_order("requirement", *BROKER, "day")}
        """,
    )


def coverage(judgements: DataFrame) -> DataFrame:
    """Requirement × broker: in how many sequences it made a difference, and how often; 0 for those that never did.

    Every requirement of the registry has a row for every broker, whether its dialect has it or not.
    """
    registry = ", ".join(f"('{one.id}', '{one.level}')" for one in requirements().values())
    same = " AND ".join(f"brokers.{name} IS NOT DISTINCT FROM made.{name}" for name in BROKER)
    brokers = ", ".join(f"brokers.{name} AS {name}" for name in BROKER)
    return _asked(
        judgements,
        f"""
        WITH registry AS (SELECT * FROM (VALUES {registry}) AS one(requirement, level)),
             brokers AS (SELECT DISTINCT {_BROKER} FROM {{judgements}}),
             said AS ({_each("said")}),
             made AS (
                 SELECT requirement, {_BROKER}, count(*) AS sequences, CAST(sum(exercised) AS BIGINT) AS exercised
                 FROM said WHERE exercised > 0 GROUP BY requirement, {_BROKER}
             )
        SELECT registry.requirement AS requirement, {brokers}, level, coalesce(sequences, 0) AS sequences,
               coalesce(exercised, 0) AS exercised
        FROM registry CROSS JOIN brokers LEFT JOIN made ON registry.requirement = made.requirement AND {same}
        ORDER BY {_order("requirement", *BROKER)}
        """,
    )


def failures_by_identity(judgements: DataFrame) -> DataFrame:
    """Identity of a failure × target: when it was first and last seen, in how many sequences and runs, and the first
    of them with its `day`.

    `versions`: those of the broker that showed it; `as_known`: a known defect of each of them explains it.
    """
    keys = "identity, requirement, defect, strength, target"
    return _asked(
        judgements,
        f"""
        WITH found AS ({_each("failures")}), placed AS ({_placed("found", keys)})
        SELECT {keys}, bool_and(as_known) AS as_known,
               array_sort(array_agg(DISTINCT version) FILTER (WHERE version IS NOT NULL)) AS versions,
               min(day) AS first_seen, max(day) AS last_seen, count(DISTINCT run) AS runs, count(*) AS sequences,
               {_first("day", "run", "sequence", "command", "observed")}
        FROM placed GROUP BY {keys} ORDER BY {_order("identity", "target")}
        """,
    )


def latency(judgements: DataFrame) -> DataFrame:
    """What × broker × day: percentiles in seconds of how long it took.

    `what` is "confirm" (publish to acknowledgement), "first delivery" (publish to delivery), or "timeout" (by how much
    the broker was late, at most, where a time was up; negative: early). The first two are exact to three digits. A
    percentile between two of the times lies between them as its place does.
    """
    keys = f"what, {_BROKER}, day"
    # the number, from 0 on, of the time just below a percentile and of that just above it
    places = {name: f"{share} * (times - 1)" for name, share in PERCENTILES.items()}
    around = ", ".join(
        f"min(CASE WHEN upto > {end}({place}) THEN seconds END) AS {name}_{end}"
        for name, place in places.items()
        for end in ("floor", "ceil")
    )
    between = ", ".join(
        f"{name}_floor + ({place} - floor({place})) * ({name}_ceil - {name}_floor) AS {name}"
        for name, place in places.items()
    )
    return _asked(
        judgements,
        f"""
        WITH measured AS ({_each("measurements")}),
             one AS (
                 SELECT what, {_BROKER}, day, seconds, times FROM ({_each("latencies")}) AS timed
                 UNION ALL
                 SELECT 'timeout' AS what, {_BROKER}, day, most AS seconds, CAST(1 AS BIGINT) AS times FROM measured
             ),
             added AS (SELECT {keys}, seconds, CAST(sum(times) AS BIGINT) AS n FROM one GROUP BY {keys}, seconds),
             placed AS (
                 SELECT *, CAST(sum(n) OVER (PARTITION BY {keys}) AS BIGINT) AS times,
                        CAST(sum(n) OVER (PARTITION BY {keys} ORDER BY seconds) AS BIGINT) AS upto
                 FROM added
             ),
             found AS (SELECT {keys}, times, {around}, max(seconds) AS most FROM placed GROUP BY {keys}, times)
        SELECT {keys}, times, {between}, most FROM found ORDER BY {_order("what", *BROKER, "day")}
        """,
    )


def flaky(judgements: DataFrame) -> DataFrame:
    """Failures that the same commands showed at one time and not at another, with their rate.

    Sequences are the same where target, version, dialect and planned commands are, whatever their runs and names;
    repetitions count here. `failed` of `tried` sequences showed the failure; `rate` is `failed` divided by `tried`.
    One that something else ended before is not among the tried ones.
    """
    keys = f"{_BROKER}, commands"
    same = " AND ".join(f"failed.{name} IS NOT DISTINCT FROM whole.{name}" for name in (*BROKER, "commands"))
    named = ", ".join(f"failed.{name} AS {name}" for name in (*BROKER, "commands"))
    return _asked(
        judgements,
        f"""
        WITH decided AS (SELECT * FROM {{judgements}} WHERE {_DECIDED}),
             whole AS (SELECT {keys}, count(*) AS whole FROM decided WHERE ended_by IS NULL GROUP BY {keys}),
             shown AS ({_each("failures", "decided", ("commands", "ended_by"))}),
             placed AS ({_placed("shown", f"{keys}, identity")}),
             failed AS (
                 SELECT {keys}, identity, count(*) AS failed, count(ended_by) AS ended,
                        {_first("day", "run", "sequence")}
                 FROM placed GROUP BY {keys}, identity
             )
        SELECT identity, {named}, failed, whole + ended AS tried,
               CAST(failed AS DOUBLE) / (whole + ended) AS rate, day, run, sequence
        FROM failed JOIN whole ON {same}
        WHERE failed < whole + ended
        ORDER BY {_order("identity", *BROKER, "commands")}
        """,
    )


def difference(judgements: DataFrame, before: str, after: str) -> DataFrame:
    """What is not the same in two runs, by target: `what` is "requirement", with both verdicts, or "failure", seen or
    not seen. A requirement that one of the runs says nothing about on a target is null there.
    """
    keys = "what, name, target"

    def of(run: str, column: str) -> str:
        chosen = f"run = {{{run}}}"
        return f"""
            SELECT 'requirement' AS what, requirement AS name, target, {_worst("verdict", column)}
            FROM said WHERE {chosen} AND requirement <> '' GROUP BY requirement, target
            UNION ALL
            SELECT DISTINCT 'failure' AS what, identity AS name, target, 'seen' AS {column}
            FROM failures WHERE {chosen}
        """

    def told(column: str) -> str:
        return f"CASE WHEN what = 'failure' THEN coalesce({column}, 'not seen') ELSE {column} END AS {column}"

    return _asked(
        judgements,
        f"""
        WITH said AS ({_each("said")}), failures AS ({_each("failures")}),
             earlier AS ({of("run_before", "before")}), later AS ({of("run_after", "after")}),
             compared AS (SELECT {keys}, {told("before")}, {told("after")} FROM earlier FULL JOIN later USING ({keys}))
        SELECT * FROM compared WHERE before IS DISTINCT FROM after ORDER BY {_order("what", "name", "target")}
        """,
        run_before=before,
        run_after=after,
    )


def regressed(judgements: DataFrame, before: str | None = None, after: str | None = None) -> DataFrame:
    """Failures of this night and of the last one, by target and version, and what became of each (`state`).

    A night is a day. `after`: this night, such as "2026-11-27", by default the last day that there is; `before`: the
    last night, by default for each target the last day before that on which anything was judged of it. States:

    - "new": seen this night and not in the last one; `same_commands`: the same commands did not show it then;
    - "still": seen in both;
    - "fixed": not seen this night, though the same commands as then were carried out to their end;
    - "not seen": not seen this night, in which other commands put the requirement to the test;
    - "not tried": not seen, and nothing put the requirement to the test on that target this night.

    `first_seen` is the first day of all on which the target showed it; `run` and `sequence` are the first that did in
    the later of the two nights. `version` is that of this night, of the last one where it was not seen since.
    """
    night = "DATE {after}" if after else "(SELECT max(day) FROM counted)"
    last = "DATE {before}" if before else "max(day)"
    columns = ("day", "run", "sequence", "command", "observed", "version", "defect")
    return _asked(
        judgements,
        f"""
        WITH counted AS (SELECT * FROM {{judgements}} WHERE repeats IS NULL AND problem IS NULL),
             nights AS (
                 SELECT target, {last} AS last, {night} AS night
                 FROM counted WHERE day < {night} GROUP BY target
             ),
             targets AS (
                 SELECT known.target AS target, {night} AS night, nights.last AS last
                 FROM (SELECT DISTINCT target FROM counted) AS known LEFT JOIN nights ON known.target = nights.target
             ),
             decided AS (SELECT * FROM {{judgements}} WHERE {_DECIDED}),
             whole AS (SELECT DISTINCT target, day, commands FROM decided WHERE ended_by IS NULL),
             said AS ({_each("said")}),
             tested AS (SELECT DISTINCT target, day, requirement FROM said WHERE exercised > 0),
             found AS ({_each("failures", "counted", ("commands",))}),
             seen AS (SELECT identity, target, min(day) AS first_seen FROM found GROUP BY identity, target),
             placed AS ({_placed("found", "identity, target, day")}),
             of_day AS (
                 SELECT identity, target, min(requirement) AS requirement, bool_and(as_known) AS as_known,
                        count(*) AS sequences, day AS on_day, {_first(*columns)}
                 FROM placed GROUP BY identity, target, day
             ),
             this AS (
                 SELECT of_day.* FROM of_day JOIN targets ON of_day.target = targets.target AND on_day = targets.night
             ),
             earlier AS (
                 SELECT of_day.* FROM of_day JOIN targets ON of_day.target = targets.target AND on_day = targets.last
             ),
             again AS (
                 SELECT DISTINCT found.identity, found.target FROM found
                 JOIN targets ON found.target = targets.target
                 JOIN whole ON whole.target = found.target AND whole.commands = found.commands
                 WHERE (found.day = targets.last AND whole.day = targets.night)
                    OR (found.day = targets.night AND whole.day = targets.last)
             ),
             compared AS (
                 SELECT coalesce(this.identity, earlier.identity) AS identity,
                        coalesce(this.target, earlier.target) AS target,
                        coalesce(this.requirement, earlier.requirement) AS requirement,
                        this.identity IS NOT NULL AS is_now, earlier.identity IS NOT NULL AS was_then,
                        coalesce(this.as_known, earlier.as_known) AS as_known,
                        coalesce(this.sequences, 0) AS sequences, coalesce(earlier.sequences, 0) AS sequences_before,
                        {", ".join(f"coalesce(this.{each}, earlier.{each}) AS {each}" for each in columns)}
                 FROM this FULL JOIN earlier ON this.identity = earlier.identity AND this.target = earlier.target
             )
        SELECT CASE WHEN is_now AND was_then THEN 'still' WHEN is_now THEN 'new'
                    WHEN again.identity IS NOT NULL THEN 'fixed'
                    WHEN tested.requirement IS NOT NULL THEN 'not seen' ELSE 'not tried' END AS state,
               compared.identity AS identity, compared.requirement AS requirement, compared.target AS target, version,
               targets.night AS night, targets.last AS last_night, first_seen, as_known, defect,
               again.identity IS NOT NULL AS same_commands, sequences, sequences_before,
               compared.day AS day, run, sequence, command, observed
        FROM compared
        JOIN targets ON compared.target = targets.target
        JOIN seen ON compared.identity = seen.identity AND compared.target = seen.target
        LEFT JOIN again ON compared.identity = again.identity AND compared.target = again.target
        LEFT JOIN tested ON tested.target = compared.target AND tested.day = targets.night
                        AND tested.requirement = compared.requirement
        ORDER BY CASE WHEN is_now AND NOT was_then THEN 0 WHEN is_now THEN 1 ELSE 2 END,
                 as_known, target NULLS FIRST, sequences DESC, identity
        """,
        **{name: day for name, day in (("before", before), ("after", after)) if day},
    )


def _asked(judgements: DataFrame, text: str, **values: str) -> DataFrame:
    """What a query gives that names the judgements as `{judgements}`, the rows of lists as `{explode}`, and texts by
    the names of `values`."""
    if hasattr(judgements, "sparkSession"):
        asked = text.replace("{explode}", "LATERAL explode")
        return judgements.sparkSession.sql(asked, judgements=judgements, **values)
    # a name of its own: what comes of a query is made when it is looked at, and the name must mean the same then
    name = f"judgements_{uuid4().hex}"
    quoted = {each: "'" + value.replace("'", "''") + "'" for each, value in values.items()}
    return judgements.query(name, text.format(explode="unnest", judgements=name, **quoted))


def _each(column: str, source: str | None = None, more: tuple[str, ...] = ()) -> str:
    """A row for each member of a list of the judgements that count, or of those in `source`."""
    extra = "".join(f"{name}, " for name in more)
    where = "" if source else "WHERE repeats IS NULL AND problem IS NULL"
    return f"""
        SELECT day, run, {_BROKER}, sequence, {extra}member.*
        FROM {source or "{judgements}"}, {{explode}}({column}) AS members(member) {where}
    """


def _placed(source: str, keys: str) -> str:
    """The rows with their `place` among those of equal keys: 1 for the first sequence of the first run."""
    return f"SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY day, run, sequence) AS place FROM {source}"


def _first(*columns: str) -> str:
    """Of each group of `_placed` these columns of the first row."""
    return ", ".join(f"max(CASE WHEN place = 1 THEN {column} END) AS {column}" for column in columns)


def _worst(column: str, name: str | None = None) -> str:
    """The worst of the verdicts in a column."""
    numbers = " ".join(f"WHEN '{verdict}' THEN {number}" for number, verdict in enumerate(VERDICTS))
    texts = " ".join(f"WHEN {number} THEN '{verdict}'" for number, verdict in enumerate(VERDICTS))
    return f"CASE min(CASE {column} {numbers} END) {texts} END AS {name or column}"


def _order(*columns: str) -> str:
    """Both engines order alike only where they are told where what is null belongs."""
    return ", ".join(f"{column} NULLS FIRST" for column in columns)
