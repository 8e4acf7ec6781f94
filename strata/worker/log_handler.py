"""A standard logging handler: records of the script go to the dashboard's log, beside its output."""

import logging

from strata.worker.run import Run, current_run

__all__ = ["LogHandler"]

_LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warn"), (logging.INFO, "info"))


class LogHandler(logging.Handler):
    """`logging.getLogger().addHandler(strata.LogHandler())`. Never raises, never blocks."""

    def __init__(self, run: Run | None = None, level: int = logging.INFO) -> None:
        super().__init__(level)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("strata."):
            return  # what the SDK itself says about a failing report must not become a report
        try:
            run = self._run or current_run()
            level = next((name for number, name in _LEVELS if record.levelno >= number), "debug")
            run.reporter.add_line(level, self.format(record))
        except Exception:
            self.handleError(record)
