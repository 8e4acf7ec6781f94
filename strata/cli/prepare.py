"""What every command and every server does first: settings of all sources, with logging set up as they say."""

from typing import Any

from strata.config import Settings, load_settings
from strata.datadir import check_data_dir
from strata.logs import set_up_logging

__all__ = ["prepare"]


def prepare(**flags: Any) -> Settings:
    """`flags` are those of the command line; None is one that nobody gave."""
    settings = load_settings(flags)
    check_data_dir(settings.data_dir)
    set_up_logging(settings.log, settings.log_format)
    return settings
