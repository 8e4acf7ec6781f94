"""Reads settings by pydantic-settings, which knows every kind of value and every file, and says what is wrong with one.
plain.py has read those that need no judging."""

import difflib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, AliasChoices, AliasGenerator, BeforeValidator, Field, ValidationError, create_model
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from strata.config.settings import SETTINGS, Secret, Settings, default_of
from strata.config.sources import DOTENV, TOML, dotenv_variables
from strata.config.variables import variables
from strata.errors import InvalidConfig

__all__ = ["read_judged"]


class _Sources(BaseSettings):
    model_config = SettingsConfigDict(
        extra="forbid",
        populate_by_name=True,
        toml_file=TOML,
        env_file=DOTENV,
        env_ignore_empty=True,
        dotenv_filtering="only_existing",  # the file is the whole project's, not ours alone
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(*variables(name))),
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls)


def read_judged(flags: Mapping[str, Any]) -> Settings:
    """Raises InvalidConfig that names what is wrong as the user wrote it, with what is allowed."""
    try:
        read = _model()(**flags)
    except ValidationError as error:
        raise InvalidConfig(_explain(error), hint="See `strata config show` and docs/configuration.md.") from None
    values = {name: getattr(read, name) for name in SETTINGS}
    secrets = {name: Secret(values[name]) for name in SETTINGS if _is_secret_kind(name) and values[name] is not None}
    return Settings(**(values | secrets), given=frozenset(read.model_fields_set))


@cache
def _model() -> type[_Sources]:
    """The record's fields as pydantic has them; secrets are text until they are read."""
    fields: dict[str, Any] = {}
    for name, field in SETTINGS.items():
        allowed = dict(field.metadata)
        kind: Any = field.type
        if _is_secret_kind(name):
            kind = str | None if type(None) in get_args(kind) else str
        if check := allowed.pop("check", None):
            kind = Annotated[kind, AfterValidator(_unless_none(check))]
        if read := allowed.pop("read", None):
            kind = Annotated[kind, NoDecode, BeforeValidator(read)]
        if Path in (kind, *get_args(kind)):
            kind = Annotated[kind, BeforeValidator(_refuse_empty)]
        default = default_of(field)
        allowed["default"] = default.get_secret_value() if isinstance(default, Secret) else default
        fields[name] = (kind, Field(**allowed))
    return create_model("JudgedSettings", __base__=_Sources, **fields)


def _refuse_empty(value: Any) -> Any:
    """Path("") is the working folder, which nobody means who says nothing."""
    if value == "":
        raise ValueError("it is empty: leave it out, or say . for the working folder")
    return value


def _unless_none(check: Any) -> Any:
    return lambda value: None if value is None else check(value)


def _is_secret_kind(name: str) -> bool:
    return Secret in (SETTINGS[name].type, *get_args(SETTINGS[name].type))


def _explain(error: ValidationError) -> str:
    """One line for the first complaint: the key as the user wrote it, the value, and what is allowed."""
    first = error.errors()[0]
    key = _as_written(str(first["loc"][0]))
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(key, SETTINGS, n=1)
        return f"{key} is not a setting of Strata" + (f"; did you mean {close[0]}?" if close else "")
    shown = "***" if _is_secret(key) else repr(first["input"])
    return f"{key} = {shown} is not valid: {first['msg'].removeprefix('Value error, ')}"


def _as_written(key: str) -> str:
    """pydantic names a field by its first alias; the user may have set the other one."""
    for field in SETTINGS:
        names = variables(field)
        if key in names:
            return next((name for name in names if os.environ.get(name) or dotenv_variables().get(name)), field)
    return key


def _is_secret(key: str) -> bool:
    return any(part in key.lower() for part in ("secret", "password", "token", "journal"))
