"""The points of an attempt that a later one superseded, told apart by the records in `attempts` alone: whoever wrote
those has decided, here they are applied. Only runs that have such records pay for it.
"""

from typing import Literal

from strata.types.metrics import ATTEMPT_TAG, WORLD_TAG, WORLDS

__all__ = ["STARTS", "TURN", "Which", "point_rows"]

# Of every step the newest attempt's points, those of earlier attempts, or both.
Which = Literal["newest", "superseded", "all"]

_ATTEMPT, _WORLD = (f"simpleJSONExtractUInt(tags_json, '{tag}')" for tag in (ATTEMPT_TAG, WORLD_TAG))
# As types/metrics.py reads the tags.
TURN = f"toUInt32(if({_ATTEMPT} BETWEEN 1 AND 99999, {_ATTEMPT} * {WORLDS} + if({_WORLD} < {WORLDS}, {_WORLD}, 0), 0))"

STARTS = """
SELECT run_id, metric, rank, device, attempt, world, minOrNull(step) AS step,
       toUnixTimestamp64Milli(min(event_time)) AS ms
FROM {db}.attempts GROUP BY run_id, metric, rank, device, attempt, world
"""
_START_TURN = f"attempt * {WORLDS} + world"
_KNOWN = f"(SELECT * FROM ({STARTS}) WHERE step IS NOT NULL)"  # noqa: S608 - constants only
_OF_RUN = f"""(SELECT run_id, groupArray({_START_TURN}) AS run_turns, groupArray(assumeNotNull(step)) AS run_steps
FROM {_KNOWN} WHERE metric = '' GROUP BY run_id)"""  # noqa: S608 - constants only
_OF_TRACK = f"""(SELECT run_id, metric, rank, device, groupArray({_START_TURN}) AS own_turns,
groupArray(assumeNotNull(step)) AS own_steps
FROM {_KNOWN} WHERE metric != '' GROUP BY run_id, metric, rank, device)"""  # noqa: S608 - constants only
_IS_SUPERSEDED = " OR ".join(
    f"arrayExists((later, start) -> later > turn AND step >= start, {name}_turns, {name}_steps)"
    for name in ("run", "own")
)
_WANTED = {
    "newest": f"NOT (turn > 0 AND ({_IS_SUPERSEDED}))",
    "superseded": f"turn > 0 AND ({_IS_SUPERSEDED})",
}


def point_rows(clause: str, which: Which) -> str:
    """What stands behind FROM to read these rows of metric_points; all but plain `all` have a column `turn`."""
    if which == "all":
        return f"{{db}}.metric_points AS p WHERE {clause}"
    return f"""(
    SELECT * EXCEPT (run_turns, run_steps, own_turns, own_steps)
    FROM (SELECT *, {TURN} AS turn FROM {{db}}.metric_points WHERE {clause}) AS every
    LEFT JOIN {_OF_TRACK} AS own USING (run_id, metric, rank, device)
    LEFT JOIN {_OF_RUN} AS run USING (run_id)
    WHERE {_WANTED[which]}
) AS p"""  # noqa: S608 - clause is made of constants
