"""Going on with a run that was there before: whether it is known, and after which step it goes on."""

from dataclasses import dataclass
from typing import Literal

from strata.client.endpoints import Endpoints, find_observatory
from strata.client.spill import offline_folder
from strata.errors import Conflict, InvalidArgument, NotFound, ObservatoryUnavailable, StrataError
from strata.worker.environment import Place

__all__ = ["Earlier", "Resume", "check_resume", "find_earlier"]

Resume = Literal["allow", "must", "never"]
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A run as it was left; `step` is None when nobody knows."""

    step: int | None


def check_resume(resume: bool | str | None, run_id: str | None) -> Resume | None:
    """What is meant by `resume`; None: nobody is asked."""
    if resume is None or resume is False:
        return None
    if resume is not True and resume not in ("allow", "must", "never"):
        raise InvalidArgument(f"resume is {resume!r}", hint='Give True or "allow", "must", "never".')
    if not run_id:
        raise InvalidArgument("resume needs the run's id", hint='strata.init(run_id="my-run", resume=True).')
    return "allow" if resume is True else resume  # type: ignore[return-value]  # checked above


def find_earlier(place: Place, resume: Resume) -> Earlier | None:
    """The run's last state, None when it begins now. `must` and `never` raise when they are not met; so does `must`
    when nobody can be asked."""
    run_id, observatory = place.run_id, find_observatory(place.settings)
    earlier = _asked(place, observatory) if observatory is not None and observatory.http else None
    if earlier is None and offline_folder(place.data_dir, run_id).is_dir():
        earlier = Earlier(step=None)
    if resume == "never" and earlier is not None:
        raise Conflict(f"run {run_id!r} is there already", hint="Choose another run_id, or resume=True.")
    if resume == "must" and earlier is None:
        raise NotFound(f"there is no run {run_id!r} to go on with", hint='resume="allow" begins one.')
    return earlier


def _asked(place: Place, observatory: Endpoints) -> Earlier | None:
    from strata.client.rest import Rest, query_of  # only for those who ask

    query = query_of({"filter": f'id = "{place.run_id}" and (archived:yes or archived:no)', "limit": 1})
    try:
        rest = Rest(place.settings, "strata.init", timeout_s=_TIMEOUT_S, at=observatory)
        found = rest.get(f"/api/runs?{query}")
    except (StrataError, ValueError) as error:
        raise ObservatoryUnavailable(
            f"whether run {place.run_id!r} is known cannot be asked at {observatory.http} ({error})",
            hint="Start `strata up`, or leave resume out: points of the same run_id join the run all the same.",
        ) from None
    return Earlier(step=found[0]["latest_step"]) if found else None
