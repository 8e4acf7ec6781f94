"""Who reads which samples, and in which order: pure functions of numbers and names, over NumPy arrays.

No asyncio, no threads, no files, no logging in here: the coordinator's state machine runs it, and so does every worker.
"""

from strata.sharding.manager import ShardManager

__all__ = ["ShardManager"]
