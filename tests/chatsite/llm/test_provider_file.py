"""The file of several providers: what it says, and each thing that can be wrong."""

import re
import runpy

import pytest

from chatsite.environment import SettingsError
from chatsite.llm import dialects, providers, vision
from chatsite.llm.provider_file import read_provider_file
from chatsite.ops import error_page
from chatsite.ops.management.commands import doctor
from tests.servers import ROOT

GOOD = """
[[providers]]
name = "Our own"
base_url = "http://me:hunter2@127.0.0.1:9/v1"
system_role = "user"
stream_usage = false

  [[providers.models]]
  name = "small"
  window = 9_000
  images = true
  prices = { input = 1, output = 3 }

[[providers]]
name = "OpenAI"
key = "sk-hunter2"

  [[providers.models]]
  name = "gpt-5.4"
  prices = { input = 2.5, cached = 1.25, output = 10 }
  groups = ["research"]
"""
OWN = "[[providers]] 'Our own': "
SMALL = "[[providers.models]] 'small' of 'Our own': "
WRONG = [
    ("name = ", "nme = ", "[[providers]] number 1: name is missing; use a text of 1"),
    ('name = "small"', 'name = "s"\nmodel = "x"', "model is 'x'; use a provider of L"),
    ("window", 'model="a:b"\n[[providers.models]]\nname="x"\nwindow', "of its models"),
    ("system_role =", "system_rol =", "system_rol is no key of this table; did you"),
    ("images", "vision", "vision is no key of this table; the keys are name, window,"),
    ('"user"', '"root"', f"{OWN}system_role is 'root'; use system, developer or user."),
    ("= false", '= "no"', f"{OWN}stream_usage is 'no'; use true or false."),
    ("9_000", "0", f"{SMALL}window is 0; use a whole number of tokens from 1 to"),
    ("9_000", '"9k"', f"{SMALL}window is '9k'; use a whole number"),
    ("input = 1,", "input = -1,", f"{SMALL}prices.input is -1; use dollars per"),
    ("output = 3", "output = nan", f"{SMALL}prices.output is nan; use dollars per"),
    ("output = 3", "outptu = 3", "prices.outptu is no key of this table; did you mean"),
    ('["research"]', '"research"', "groups is 'research'; use a list of names of"),
    ("9_000", "9_000\noptions.top_p = 2", f"{SMALL}options.top_p is 2; use a number"),
    ("9_000", "9_000\noptions.seed = 0.5", f"{SMALL}options.seed is 0.5; use a whole"),
    ("9_000", "9_000\noptions.effort = 1", "options.effort is no key of this table; "),
    ("9_000", '9_000\noptions.service_tier = "x"', "is 'x'; use auto, default, flex,"),
    ("= false", '= false\noptions.reasoning_effort = ""', "is ''; use none, minimal,"),
    (
        "= false",
        '= false\nheaders.Host = "hunter2"',
        f"{OWN}headers can't be used; use",
    ),
    ("= false", '= false\nheaders.X-A = "a\\nhunter2"', "headers can't be used; use a"),
    ("= false", '= false\nheaders."X A" = "hunter2"', "headers can't be used; use a"),
    ("= false", "= false\nheaders.X-A = 7", "headers.X-A can't be used; use a table"),
    (
        "= false",
        '= false\napi_version = "new"',
        f"{OWN}api_version is 'new'; use a ver",
    ),
    (
        'key = "',
        'api_version = "latest"\nkey = "',
        "api_version is for Azure; add base",
    ),
    ('["research"]', "[7]", "groups is 7; use a list of names of groups"),
    ('"small"', '"demo"', "name is 'demo'; use a text of 1 to 100 characters; demo is"),
    ("http://me", "ftp://me", f"{OWN}base_url can't be used; use an address like"),
    ('"gpt-5.4"', '"small"', "'Our own' and 'OpenAI' both have the model 'small'; a"),
    ('"OpenAI"', '"Our own"', "two [[providers]] have the name 'Our own'; rename one."),
    ('key = "sk-hunter2"', "", "[[providers]] 'OpenAI': OpenAI needs a key; add"),
    ("key =", "key_env =", "key_env is 'sk-hunter2', but the environment has no such"),
    ('key = "', 'key_env = "X"\nkey = "', "it has both key and key_env; keep one of"),
    ('key = "', 'key = "\u201c', "key can't be used; use the key alone, in ASCII"),
    ("sk-hunter2", "sk-hunter2 ", "key can't be used; use the key alone, in ASCII"),
    ("[[providers]]", "[providers]", "it is no TOML: "),
    (
        "window = 9_000",
        "groups = ['x']",
        "PROVIDERS_FILE: its first model, 'small', is for",
    ),
]


@pytest.fixture
def read(tmp_path):
    """read(text, **chosen) -> the providers, and what is wrong."""

    def read(text, **chosen):
        path = tmp_path / "providers.toml"
        path.write_text(text)
        names = {"CHAT_MODEL": "", "SUMMARY_MODEL": "", **chosen}
        return read_provider_file(str(path), names)

    return read


@pytest.fixture
def listed(settings, read):
    settings.PROVIDERS, problems = read(GOOD)
    assert problems == []


@pytest.mark.parametrize(("before", "after", "said"), WRONG)
def test_each_mistake_is_a_sentence(read, tmp_path, before, after, said):
    assert before in GOOD
    _, [sentence, *_] = read(GOOD.replace(before, after, 1))
    is_named = sentence.startswith(f"PROVIDERS_FILE, {tmp_path}/providers.toml: ")
    assert is_named or "first model" in said
    assert said in sentence
    assert sentence.endswith((".", "?"))
    assert "hunter2" not in sentence or "key_env" in said


def test_mistakes_are_reported_together(read):
    _, problems = read(GOOD.replace("9_000", "0").replace('"user"', '"root"'))
    assert len(problems) == 2


def test_the_models_of_the_site_are_there_for_all(read):
    [missing] = read(GOOD, CHAT_MODEL="big")[1]
    assert missing.startswith("CHAT_MODEL is 'big'; use a model of PROVIDERS_FILE: sm")
    [restricted] = read(GOOD, SUMMARY_MODEL="gpt-5.4")[1]
    assert "SUMMARY_MODEL is 'gpt-5.4', which PROVIDERS_FILE has for some" in restricted


@pytest.mark.parametrize("raw", [b"\xff", b"x = ", b"", b"[[providers]]\n" * 50_000])
def test_wrong_files_cause_no_traceback(tmp_path, raw):
    path = tmp_path / "p.toml"
    path.write_bytes(raw)
    found, problems = read_provider_file(str(path), {"CHAT_MODEL": ""})
    assert found == ()
    assert problems
    assert read_provider_file(str(tmp_path), {})[1]


def test_the_example_of_the_documentation_is_right(read, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    page = (ROOT / "docs" / "settings.md").read_text()
    found, problems = read(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1])
    assert problems == []
    assert [each.name for each in found] == ["OpenAI", "Our own"]


class TestStart:
    @pytest.fixture
    def start(self, tmp_path, monkeypatch):
        """start(text, **environment) -> the settings of a process that starts."""

        def start(text, **environment):
            path = tmp_path / "providers.toml"
            path.write_text(text)
            monkeypatch.setenv("PROVIDERS_FILE", str(path))
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            return runpy.run_path(str(ROOT / "chatsite" / "settings.py"))

        return start

    def test_a_file_is_read_with_the_settings(self, start):
        text = GOOD.replace('key = "sk-hunter2"', 'key_env = "OPENAI_KEYS"')
        started = start(text, OPENAI_KEYS="sk-x")
        assert [each.name for each in started["PROVIDERS"]] == ["Our own", "OpenAI"]
        assert started["PROVIDERS"][1].secret == "sk-x"
        assert [s for s in started["env"].find_slips() if "OPENAI_KEYS" in s] == []

    def test_settings_of_the_file_are_not_repeated(self, start):
        with pytest.raises(SettingsError) as caught:
            start(GOOD, CONTEXT_WINDOW="8000", CHAT_MODELS="a,b")
        said = "{} has no meaning beside PROVIDERS_FILE; write it into that file."
        names = ("CHAT_MODELS", "CONTEXT_WINDOW")
        assert str(caught.value).splitlines() == [said.format(n) for n in names]


class TestUse:
    pytestmark = pytest.mark.usefixtures("listed")

    def test_each_model_has_its_provider(self):
        assert providers.default_model() == "small"
        assert providers.list_models() == ["small", "gpt-5.4"]
        assert providers.name_provider("small") == "Our own"
        assert providers.build("small").openai_api_base == "http://127.0.0.1:9/v1"
        assert providers.build("gpt-5.4").openai_api_base is None

    def test_each_has_its_window_its_images_and_its_dialect(self):
        assert providers.context_window("small") == 9_000
        assert providers.context_window("gpt-5.4") == 1_050_000
        assert vision.takes_images("small")
        dialect = dialects.find_dialect("small")
        assert (dialect.system_role, dialect.without) == ("user", {"stream_options"})
        assert dialects.find_dialect("gpt-5.4") == dialects.Dialect()
        assert providers.cache_options("small", "c") == {}
        assert providers.cache_options("gpt-5.4", "c") == {"prompt_cache_key": "c"}

    def test_model_outside_the_file_is_never_called(self):
        assert providers.find_provider("gpt-5") is None
        assert providers.name_provider("gpt-5") == ""
        assert providers.context_window("gpt-5") == 32_000

    def test_doctor_lists_them_without_a_secret(self):
        said = doctor.check_model_settings()
        assert said == (
            "Our own at 127.0.0.1 has small; no key is set; "
            "OpenAI at api.openai.com has gpt-5.4; a key is set"
        )

    def test_secrets_are_shown_nowhere(self, settings):
        assert "hunter2" not in repr(settings.PROVIDERS)
        assert {"hunter2", "sk-hunter2"} <= error_page.list_secrets()
