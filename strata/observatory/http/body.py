"""What every JSON body of a request has in common: known fields only, and nothing that could not be shown later."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from strata.types.shown import MAX_DEPTH, check_shown

__all__ = ["Body", "Int32", "Int64"]

Int32 = Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]
Int64 = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]


class Body(BaseModel):
    """The root of all request bodies."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _shown(cls, given: Any) -> Any:
        check_shown("the body", given, MAX_DEPTH + 1)
        return given
