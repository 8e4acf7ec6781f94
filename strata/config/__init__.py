"""Settings, read once at the edge: flags over environment over `.env` over strata.toml over defaults.

Every variable X is also accepted as STRATA_X. Unknown keys and bad values are refused by name, with what is allowed.
"""

from strata.config.load import check_storage, load_settings, masked
from strata.config.settings import SETTINGS, Secret, Settings, default_of
from strata.config.sources import dotenv_variables, environment
from strata.config.variables import RANK_VARIABLES, variables

__all__ = [
    "RANK_VARIABLES",
    "SETTINGS",
    "Secret",
    "Settings",
    "check_storage",
    "default_of",
    "dotenv_variables",
    "environment",
    "load_settings",
    "masked",
    "variables",
]
