"""The file of PROVIDERS_FILE: several providers at once, each with its models.

The settings load this module, so it knows none of them.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from chatsite.environment import (
    ALIKE,
    KEY_ALLOWED,
    MOST,
    SHOWN_CHARS,
    Setting,
    is_key,
    parse_address,
)

SETTING = "PROVIDERS_FILE"
OPENAI_ADDRESS = "https://api.openai.com/v1"
# What is said of one provider in the environment; with a file it has a place there.
SHORT_FORM = (
    *("OPENAI_BASE_URL", "PROVIDER_NAME", "CHAT_MODELS", "CONTEXT_WINDOW"),
    *("STREAM_USAGE", "SYSTEM_ROLE", "STRUCTURED_OUTPUT", "IMAGE_MODELS"),
    *("PRICE_INPUT", "PRICE_OUTPUT"),
)
SECRET = ("key", "base_url", "headers")
# Headers that a request has anyway, or that say how it is sent.
OWN_HEADERS = re.compile(
    r"(?i)authorization|api-key|host|connection|cookie|expect|te|upgrade"
    r"|(?:content|transfer|accept|proxy)-.*"
)

MODEL_ALLOWED = "a text of 1 to 100 characters; demo is the demo model's"
NAME_ALLOWED = "a text of 1 to 100 characters"
ADDRESS_ALLOWED = (
    "an address like http://127.0.0.1:11434/v1, or leave it out for OpenAI"
)
VARIABLE_ALLOWED = "the name of an environment variable that holds the key"
ROLE_ALLOWED = "system, developer or user"
FLAG_ALLOWED = "true or false"
WINDOW_ALLOWED = f"a whole number of tokens from 1 to {MOST:,}"
PRICE_ALLOWED = "dollars per million tokens, a number from 0 to 1,000,000"
EFFORT_ALLOWED = "none, minimal, low, medium, high, xhigh or max"
TIER_ALLOWED = "auto, default, flex, scale, priority or fast"
SHARE_ALLOWED = "a number from 0 to 1"
SEED_ALLOWED = "a whole number"
OPTIONS_ALLOWED = 'a table like { reasoning_effort = "low", top_p = 0.9 }'
HEADERS_ALLOWED = (
    'a table like { X-Team = "search" } in ASCII; the key and what says how a request '
    "is sent have no place there"
)
VERSION_ALLOWED = 'a version of Azure\'s API like "2024-10-21", beside base_url'
LANGCHAIN_ALLOWED = (
    'a provider of LangChain and its model like "anthropic:claude-opus-4-7", or a '
    'function that makes one like "package.module:function"'
)
GROUPS_ALLOWED = "a list of names of groups, or leave it out: then all people may"
PRICES_ALLOWED = "a table like { input = 0.75, cached = 0.075, output = 4.5 }"
MODELS_ALLOWED = "one [[providers.models]] or more"
PROVIDERS_ALLOWED = "one [[providers]] or more"


def _check_model_name(name: str) -> str:
    if name == "demo":
        raise ValueError(name)
    return name


def _check_own_address(text: str) -> str:
    """Return "" for OpenAI's own address: its models and fields are known."""
    address = parse_address(("http", "https"), text)
    return "" if address.rstrip("/") == OPENAI_ADDRESS else address


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, text in headers.items():
        is_name = re.fullmatch(r"[\w-]{1,100}", name, re.ASCII)
        is_text = re.fullmatch(r"[!-~](?:[ -~]{0,4000}[!-~])?", text)
        if not is_name or not is_text or OWN_HEADERS.fullmatch(name):
            raise ValueError(name)
    return headers


Name = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=100, strip_whitespace=True, pattern=r"^[^\x00-\x1f]+$"
    ),
]
Price = Annotated[
    float, Field(ge=0, le=1_000_000, allow_inf_nan=False, description=PRICE_ALLOWED)
]


class ProviderTable(BaseModel):
    # Built at the first use: most sites have no such file.
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, defer_build=True
    )


class Prices(ProviderTable):
    """The prices of a million tokens, in dollars.

    `cached`: of those from the provider's cache; None: reduced by the usual factor.
    `cache_write`, `cache_write_long`: of those that are written to it; None: raised by
    the usual factor.
    """

    input: Price = 0.0
    cached: Price | None = Field(default=None, description=PRICE_ALLOWED)
    output: Price = 0.0
    cache_write: Price | None = Field(default=None, description=PRICE_ALLOWED)
    cache_write_long: Price | None = Field(default=None, description=PRICE_ALLOWED)


class RequestOptions(ProviderTable):
    """Optional fields of each request; None: not sent."""

    reasoning_effort: (
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    ) = Field(default=None, description=EFFORT_ALLOWED)
    service_tier: (
        Literal["auto", "default", "flex", "scale", "priority", "fast"] | None
    ) = Field(default=None, description=TIER_ALLOWED)
    top_p: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False, description=SHARE_ALLOWED
    )
    seed: int | None = Field(
        default=None, ge=-(2**63), lt=2**63, description=SEED_ALLOWED
    )


class Model(ProviderTable):
    """One model, by the name that its provider and people know it by."""

    name: Annotated[Name, AfterValidator(_check_model_name)] = Field(
        description=MODEL_ALLOWED
    )
    # None: as LangChain knows it of OpenAI's own.
    window: int | None = Field(default=None, ge=1, le=MOST, description=WINDOW_ALLOWED)
    # What LangChain makes, in place of the client of OpenAI-compatible servers.
    model: str = Field(
        default="",
        max_length=200,
        pattern=r"^(\w+:\S+|\w+(\.\w+)+:\w+)?$",
        description=LANGCHAIN_ALLOWED,
    )
    # None: only OpenAI's models that have no chat completions.
    use_responses_api: bool | None = Field(default=None, description=FLAG_ALLOWED)
    images: bool | None = Field(default=None, description=FLAG_ALLOWED)
    prices: Prices = Field(default=Prices(), description=PRICES_ALLOWED)
    # Before those of its provider.
    options: RequestOptions = Field(
        default=RequestOptions(), description=OPTIONS_ALLOWED
    )
    # The user has to be in one of them to use the model; none: all users may.
    groups: list[Name] = Field(default=[], description=GROUPS_ALLOWED)


class ModelProvider(ProviderTable):
    """A server of models, and how it takes a request."""

    # Found on this machine: its models have its name in front.
    is_local: ClassVar[bool] = False
    name: Name = Field(description=NAME_ALLOWED)
    base_url: Annotated[str, AfterValidator(_check_own_address)] = Field(
        default="", description=ADDRESS_ALLOWED, repr=False
    )
    key: str = Field(default="", description=KEY_ALLOWED, repr=False)
    key_env: str = Field(default="", description=VARIABLE_ALLOWED)
    system_role: Literal["system", "developer", "user"] = Field(
        default="system", description=ROLE_ALLOWED
    )
    stream_usage: bool = Field(default=True, description=FLAG_ALLOWED)
    # None: OpenAI itself can, others not always.
    structured_output: bool | None = Field(default=None, description=FLAG_ALLOWED)
    options: RequestOptions = Field(
        default=RequestOptions(), description=OPTIONS_ALLOWED
    )
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = Field(
        default={}, description=HEADERS_ALLOWED, repr=False
    )
    api_version: str = Field(
        default="",
        pattern=r"^(\d{4}-\d\d-\d\d(-preview)?|preview|latest)?$",
        description=VERSION_ALLOWED,
    )
    models: list[Model] = Field(min_length=1, description=MODELS_ALLOWED)

    @property
    def is_openai(self) -> bool:
        return not self.base_url and not self.langchain_name

    @property
    def langchain_name(self) -> str:
        """LangChain's name of the provider, or the module of a factory; "": none."""
        return self.models[0].model.partition(":")[0] if self.models else ""

    @property
    def can_hold_schemas(self) -> bool:
        own = self.structured_output
        return self.is_openai if own is None else own

    @property
    def secret(self) -> str:
        return self.key or os.environ.get(self.key_env, "")

    @property
    def sent_headers(self) -> dict[str, str]:
        """Return the headers of each request, apart from `authorization`."""
        is_azure = self.api_version and self.secret
        return {**self.headers, **({"api-key": self.secret} if is_azure else {})}

    @property
    def sent_query(self) -> dict[str, str]:
        """Return the query of each request's address."""
        return {"api-version": self.api_version} if self.api_version else {}


class ModelProviderFile(ProviderTable):
    providers: list[ModelProvider] = Field(min_length=1, description=PROVIDERS_ALLOWED)


TABLES: dict[tuple[str, ...], type[ProviderTable]] = {
    (): ModelProviderFile,
    ("providers",): ModelProvider,
    ("providers", "options"): RequestOptions,
    ("providers", "models"): Model,
    ("providers", "models", "options"): RequestOptions,
    ("providers", "models", "prices"): Prices,
}


def read_provider_file(
    path: str, chosen: Mapping[str, str]
) -> tuple[tuple[ModelProvider, ...], list[str]]:
    """Return the providers of the file, and a sentence for each problem in it.

    `chosen`: the models of the site that other settings name.
    """
    say = partial("{}, {}: {}".format, SETTING, path)
    try:
        value = tomllib.loads(Path(path).read_text("utf-8"))
        read = ModelProviderFile.model_validate(value)
    except OSError as error:
        return (), [f"{SETTING} names {path}, which can't be read: {error.strerror}."]
    except UnicodeDecodeError:
        return (), [say("it is not UTF-8; save it as that.")]
    except tomllib.TOMLDecodeError as error:
        return (), [say(f"it is no TOML: {error}.")]
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False)
        return (), [say(_explain_error(each, value)) for each in errors]
    found = [*_find_key_problems(read), *_find_name_problems(read)]
    problems = [say(each) for each in found]
    problems += _find_wrong_choices(read, chosen)
    return tuple(read.providers), problems


def _explain_error(error: Mapping[str, Any], value: Any) -> str:
    """Return a sentence with the table, its key and what is allowed there."""
    where, keys = _locate(error["loc"], value)
    names = tuple(step for step in error["loc"] if isinstance(step, str))
    table = TABLES[names[:-1]] if names[:-1] in TABLES else TABLES[names[:-2]]
    name = names[-1] if names[:-1] in TABLES else names[-2]
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, table.model_fields, 1, ALIKE - 0.25)
        known = f"the keys are {', '.join(table.model_fields)}"
        meant = f"did you mean {near[0]}?" if near else f"{known}."
        return f"{where}{keys} is no key of this table; {meant}"
    allowed = table.model_fields[name].description
    if error["type"] == "missing":
        return f"{where}{keys} is missing; use {allowed}."
    given = error["input"]
    is_shown = name not in SECRET and isinstance(given, str | int | float)
    shown = f"is {_write(given)}" if is_shown else "can't be used"
    return f"{where}{keys} {shown}; use {allowed}."


def _write(given: str | float) -> str:
    """Return a value as it is written in the file."""
    if isinstance(given, bool):
        return str(given).lower()
    return repr(given[:SHOWN_CHARS] if isinstance(given, str) else given)


def _locate(steps: Sequence[Any], value: Any) -> tuple[str, str]:
    """Return the table of an error, by its name or number, and the key there."""
    tables, keys = [], []
    for step in steps:
        value = _take(value, step)
        if isinstance(step, int) and keys[-1:] in (["providers"], ["models"]):
            name = _take(value, "name")
            named = repr(name) if isinstance(name, str) else f"number {step + 1}"
            tables.append(named)
            keys = []
        elif isinstance(step, str):
            keys.append(step)
    heads = ("", "[[providers]] {}: ", "[[providers.models]] {1} of {0}: ")
    return heads[len(tables)].format(*tables), ".".join(keys)


def _take(value: Any, step: Any) -> Any:
    try:
        return value[step]
    except (LookupError, TypeError):
        return None


def _find_key_problems(read: ModelProviderFile) -> Iterator[str]:
    for each in read.providers:
        where = f"[[providers]] {each.name!r}: "
        if len({bool(model.model) for model in each.models}) > 1:
            yield f"{where}some of its models have model, others not; make it two."
        if each.key and each.key_env:
            yield f"{where}it has both key and key_env; keep one of them."
        elif each.key_env and not each.secret:
            yield (
                f"{where}key_env is {each.key_env!r}, but the environment has no such "
                "variable; set it, or name another one."
            )
        elif not is_key(each.secret):
            named = f"the variable {each.key_env}" if each.key_env else "key"
            yield f"{where}{named} can't be used; use {KEY_ALLOWED}."
        elif each.is_openai and each.api_version:
            yield f"{where}api_version is for Azure; add base_url, or leave it out."
        elif each.is_openai and not each.secret:
            yield f"{where}OpenAI needs a key; add key_env or key, or base_url."


def _find_name_problems(read: ModelProviderFile) -> Iterator[str]:
    """Yield a sentence for each name that two providers or models share.

    A conversation keeps the name of its model, which has to lead to one server.
    """
    providers: set[str] = set()
    owners: dict[str, str] = {}
    for each in read.providers:
        if each.name in providers:
            yield f"two [[providers]] have the name {each.name!r}; rename one."
        providers.add(each.name)
        for model in each.models:
            if other := owners.get(model.name):
                yield (
                    f"{other!r} and {each.name!r} both have the model {model.name!r}; "
                    "a model can be in the file only once."
                )
            owners[model.name] = each.name


def _find_wrong_choices(
    read: ModelProviderFile, chosen: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each model of the settings that the file can't serve.

    The models that the site itself uses have to be there, and for all people.
    """
    models = {model.name: model for each in read.providers for model in each.models}
    for setting, name in chosen.items():
        if name and name not in models:
            yield (
                f"{setting} is {name[:SHOWN_CHARS]!r}; use a model of {SETTING}: "
                f"{', '.join(models)}."
            )
        elif name and models[name].groups:
            yield (
                f"{setting} is {name!r}, which {SETTING} has for some groups only; "
                "use a model for all people."
            )
    first = next(iter(models.values()))
    if not chosen["CHAT_MODEL"] and first.groups:
        yield (
            f"{SETTING}: its first model, {first.name!r}, is for some groups only; "
            "put a model for all people first, or name one in CHAT_MODEL."
        )


def find_short_form(read: Mapping[str, Setting]) -> Iterator[str]:
    """Yield a sentence for each setting whose value belongs into the file.

    Such a setting describes one provider, the file several.
    """
    for name in SHORT_FORM:
        if read[name].value != read[name].default:
            yield f"{name} has no meaning beside {SETTING}; write it into that file."
