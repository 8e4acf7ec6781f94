"""Who reads which samples, and in which order: pure functions of numbers and names, over NumPy arrays.

No asyncio, no threads, no files, no logging in here: the coordinator's state machine runs it, and so does every worker.
"""

from strata.sharding.cursor import QueueCursor, SyncCursor
from strata.sharding.lanes import Lane, LaneLayout, OrderSpec, Window
from strata.sharding.manager import ShardManager
from strata.sharding.order import EpochOrder, Tail, default_lanes
from strata.sharding.permutation import Permutation
from strata.sharding.spans import Spans
from strata.sharding.sticky import plan_sticky
from strata.sharding.table import Table

__all__ = [
    "EpochOrder",
    "Lane",
    "LaneLayout",
    "OrderSpec",
    "Permutation",
    "QueueCursor",
    "ShardManager",
    "Spans",
    "SyncCursor",
    "Table",
    "Tail",
    "Window",
    "default_lanes",
    "plan_sticky",
]
