"""Settings that the site can't run with: each is named in a sentence, none in a
traceback, and nothing is started."""

import json
import os
import runpy
import subprocess
import sys

import pytest
from django.core import checks

from chatsite.environment import SettingsError, SiteEnv, load_settings
from tests.servers import ROOT

# What is tried, and what is said of it. A value that can hold a password is not shown.
AT_START = [
    ({"SECRET_KEY": "", "DEBUG": "false"}, "Set SECRET_KEY and ALLOWED_HOSTS"),
    ({"ALLOWED_HOSTS": "", "DEBUG": "false"}, "Set SECRET_KEY and ALLOWED_HOSTS"),
    ({"CONTEXT_WINDOW": "lots"}, "CONTEXT_WINDOW is 'lots'; use a whole number from 0"),
    ({"CONTEXT_WINDOW": '"8000"'}, "to 1,000,000,000, without quotes."),
    ({"CONTEXT_WINDOW": ""}, "CONTEXT_WINDOW is ''; use a whole number"),
    ({"CONTEXT_WINDOW": "-1"}, "CONTEXT_WINDOW is '-1'; use a whole number from 0"),
    ({"MESSAGES_PER_MINUTE": "-5"}, "MESSAGES_PER_MINUTE is '-5'; use a whole number"),
    ({"TOKENS_PER_DAY": "9" * 30}, "TOKENS_PER_DAY is '999"),
    ({"SIGNUP_ENABLED": "maybe"}, "SIGNUP_ENABLED is 'maybe'; use true or false."),
    ({"DEBUG": "yep"}, "DEBUG is 'yep'; use true or false."),
    ({"LOG_LEVEL": "LOUD"}, "LOG_LEVEL is 'LOUD'; use INFO, DEBUG, WARNING, ERROR or"),
    ({"SYSTEM_ROLE": "root"}, "SYSTEM_ROLE is 'root'; use system, developer or user."),
    ({"TIME_ZONE": "Mars/Base"}, "TIME_ZONE is 'Mars/Base'; use the name of a time"),
    ({"TIME_ZONE": "../../etc"}, "TIME_ZONE is '../../etc'; use the name of a time"),
    (
        {"CHAT_TEMPERATURE": "9"},
        "CHAT_TEMPERATURE is '9'; use a number from 0 to 2, or",
    ),
    ({"SUMMARY_TEMPERATURE": "nan"}, "SUMMARY_TEMPERATURE is 'nan'; use a number"),
    ({"PROCESSOR_SHARE_PER_USER": "101"}, "use a number from 0 to 100."),
    ({"TURN_LEASE_SECONDS": "0"}, "TURN_LEASE_SECONDS is '0'; use a number from 2"),
    ({"TURN_LEASE_SECONDS": "1", "TURN_SWEEP_SECONDS": "30"}, "LEASE_SECONDS is '1'"),
    ({"MODEL_TOTAL_TIMEOUT": "inf"}, "MODEL_TOTAL_TIMEOUT is 'inf'; use a number"),
    ({"MODEL_MAX_ATTEMPTS": "0"}, "MODEL_MAX_ATTEMPTS is '0'; use a whole number from"),
    ({"DATABASE_POOL_SIZE": "0"}, "DATABASE_POOL_SIZE is '0'; use a whole number from"),
    ({"REQUESTS_AT_ONCE": "0"}, "REQUESTS_AT_ONCE is '0'; use a whole number from 1"),
    ({"DATABASE_URL": "mysql//foo"}, "DATABASE_URL can't be used; use an address like"),
    ({"DATABASE_URL": "mysql://me:hunter2@x/y"}, "DATABASE_URL can't be used"),
    ({"DATABASE_URL": "postgres://me@x:port/y"}, "DATABASE_URL can't be used"),
    ({"DATABASE_URL": "postgres://me:1#hunter2@x/y"}, "has %23 for #, %2F for /"),
    ({"DATABASE_URL": "postgres://me:hunter2@s#w/x@h/db"}, "has %23 for #, %2F for /"),
    ({"DATABASE_URL": "postgres://me:2/hunter2@x/y"}, "has %23 for #, %2F for /"),
    ({"DATABASE_URL": "postgres://me:2?hunter2@x/y"}, "has %23 for #, %2F for /"),
    ({"REDIS_URL": "redis://:3/hunter2@x/0"}, "has %23 for #, %2F for /"),
    ({"OPENAI_API_KEY": "sk-hunter2\n"}, "the key alone, in ASCII, without spaces or"),
    ({"OPENAI_API_KEY": "\u201csk-hunter2\u201d"}, "or line ends, without quotes."),
    ({"OPENAI_API_KEY": "'sk-hunter2'"}, "or line ends, without quotes."),
    ({"ANTHROPIC_API_KEY": "sk hunter2"}, "ANTHROPIC_API_KEY can't be used; use the"),
    (
        {"REDIS_URL": "http://:hunter2@x"},
        "REDIS_URL can't be used; use an address like",
    ),
    ({"WEB_NETWORKS": "10.1.2.3/24"}, "WEB_NETWORKS is '10.1.2.3/24'; use networks"),
    ({"WEB_NETWORKS": "intranet"}, "WEB_NETWORKS is 'intranet'; use networks"),
    ({"REDIS_SENTINELS": "redis-1"}, "REDIS_SENTINELS is 'redis-1'; use servers with"),
    ({"REDIS_SENTINELS": "a:1,b:2"}, "REDIS_SENTINELS is set, and REDIS_URL is not;"),
    ({"OPENAI_BASE_URL": "localhost:11434"}, "OPENAI_BASE_URL can't be used; use an"),
    ({"OPENAI_BASE_URL": "me:hunter2@gateway/v1"}, "OPENAI_BASE_URL can't be used"),
    ({"OPENAI_BASE_URL": "http://me:hunter2@[::1/v1"}, "OPENAI_BASE_URL can't be used"),
    ({"OPENAI_BASE_URL": "ftp://x/v1"}, "like http://127.0.0.1:11434/v1."),
    ({"SITE_ORIGINS": "chat.example.com"}, "SITE_ORIGINS is 'chat.example.com'; use"),
    ({"SITE_ORIGINS": "*"}, "SITE_ORIGINS is '*'; use full origins as browsers write"),
    (
        {"EMAIL_URL": "smtp://me:hunter2@mail", "MAIL_FROM": "chat@example.org"},
        "EMAIL_URL is set, and SITE_ORIGINS is not; set it to the full origins",
    ),
    ({"ENV_FILE": "/nope/.env"}, "ENV_FILE is '/nope/.env'; use the path of a file"),
]
NO_TOOL = "no.such.module"
BY_CHECK = [
    ({"CONTEXT_WINDOW": 100}, "chat.E004"),
    ({"CONTEXT_WINDOW": 50, "SYSTEM_PROMPT": "long " * 500}, "chat.E004"),
    ({"CHAT_MODEL": "gpt-9"}, "chat.E008"),
    ({"MCP_SERVERS": "/no/such/file.json"}, "chat.E005"),
    ({"TOOLS": [NO_TOOL]}, "chat.E004"),
    ({"DEFAULT_TOOLS": ["serch"]}, "chat.W010"),
    ({"ALLOWED_HOSTS": ["chat.example.com", "*"]}, "chat.E002"),
    ({"ALLOWED_HOSTS": ["10.0.0.1"]}, "chat.W007"),
    ({"SITE_ORIGINS": []}, "chat.W001"),
    ({"SECRET_KEY": "short"}, "security.W009"),
]
# Servers that cannot be reached, with the name of the check, and its message.
NOWHERE = "127.0.0.1:1"
BY_DOCTOR = [
    (
        {"DATABASE_URL": f"postgres://me:hunter2@{NOWHERE}/site"},
        ("database", "Connection refused", "Check DATABASE_URL, and that it runs."),
    ),
    (
        {"REDIS_URL": f"redis://:hunter2@{NOWHERE}/0"},
        ("channel layer", "Redis can't be used: Error 111", "Check REDIS_URL."),
    ),
]
WITHOUT_DEBUG = {
    "DEBUG": False,
    "ALLOWED_HOSTS": ["chat.example.com"],
    "SITE_ORIGINS": ["https://chat.example.com"],
}


def read_settings():
    """settings.py, as a process reads it that starts now."""
    return runpy.run_path(str(ROOT / "chatsite" / "settings.py"))


@pytest.mark.parametrize(("given", "said"), AT_START)
def test_invalid_setting_is_refused_with_a_sentence(monkeypatch, given, said):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    [sentence] = str(caught.value).splitlines()
    assert said in sentence
    assert sentence.endswith(".")
    assert "hunter2" not in sentence


@pytest.mark.parametrize(("given", "found"), BY_CHECK)
def test_a_check_names_what_can_only_be_seen_together(settings, given, found):
    for name, value in {**WITHOUT_DEBUG, **given}.items():
        setattr(settings, name, value)
    issues = checks.run_checks(include_deployment_checks=True)
    assert found in [each.id for each in issues]


@pytest.mark.parametrize(("given", "found"), BY_DOCTOR)
def test_doctor_names_what_does_not_answer(tmp_path, given, found):
    env = {"DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3", **given}
    command = [sys.executable, "manage.py", "doctor", "--json"]
    env = {**os.environ, **env}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    rows = {each["name"]: each["detail"] for each in json.loads(done.stdout)["checks"]}
    name, *said = found
    assert all(part in rows[name] for part in said)
    assert "hunter2" not in done.stdout + done.stderr
    if name == "database":
        assert rows["migrations"] == "not known without the database"


def test_errors_of_all_settings_are_reported_at_once(monkeypatch):
    for name, value in {"TIME_ZONE": "x", "TOOL_ROUNDS": "x"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"CHAT_TEMPERATURE": "1.25"}, ("CHAT_TEMPERATURE", 1.25)),
        ({"CHAT_TEMPERATURE": ""}, ("CHAT_TEMPERATURE", None)),
        ({"OPENAI_BASE_URL": " http://x/v1 "}, ("OPENAI_BASE_URL", "http://x/v1")),
        ({"CHAT_MODELS": "a, b,"}, ("CHAT_MODELS", ["a", "b"])),
        (
            {"DATABASE_URL": "postgres://me:p%23%2F%40@x:1/y?application_name=a@b"},
            ("DATABASE_URL", "postgres://me:p%23%2F%40@x:1/y?application_name=a@b"),
        ),
        ({"SIGNUP_ENABLED": "Off"}, ("SIGNUP_ENABLED", False)),
        *(
            ({"SITE_ORIGINS": origin}, ("SITE_ORIGINS", [origin]))
            for origin in (
                "http://127.0.0.1:8000",
                "https://chat.example.com:8443",
                "http://[::1]:8000",
                "https://xn--bcher-kva.example",
            )
        ),
    ],
)
def test_valid_values_are_read(monkeypatch, given, expected):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    name, value = expected
    assert read_settings()[name] == value


@pytest.mark.parametrize(
    "origin",
    [
        "https://chat.example.com/",
        "https://*.example.com",
        "null",
        "ws://chat.example.com",
        "https://user@chat.example.com",
        "https://Chat.example.com",
        "https://chat.example.com:443",
        "http://chat.example.com:80",
    ],
)
def test_invalid_origins_are_refused(monkeypatch, origin):
    monkeypatch.setenv("SITE_ORIGINS", f"https://good.example,{origin}")
    env = SiteEnv()
    assert env.origin_list("SITE_ORIGINS") == []
    assert len(env.problems) == 1


def test_source_of_a_value_is_known(monkeypatch, tmp_path):
    file = tmp_path / "some.env"
    file.write_text("TIME_ZONE=Asia/Tokyo\nTOOL_ROUNDS=5\n")
    monkeypatch.setattr(os, "environ", {"ENV_FILE": str(file), "TOOL_ROUNDS": "6"})
    monkeypatch.setattr("environ.Env.ENVIRON", os.environ)
    env = SiteEnv()
    env.read_file(tmp_path / ".env")
    assert env.time_zone("TIME_ZONE", default="UTC") == "Asia/Tokyo"
    assert env.int("TOOL_ROUNDS", default=60) == 6
    assert not env.bool("STREAM_USAGE", default=False)
    names = ("TIME_ZONE", "TOOL_ROUNDS", "STREAM_USAGE")
    assert [env.find_source(name) for name in names] == ["file", "environment", ""]


def test_file_with_a_byte_order_mark_is_read_whole(monkeypatch, tmp_path):
    file = tmp_path / "some.env"
    file.write_bytes(b"\xef\xbb\xbfTIME_ZONE=Asia/Tokyo\r\nTOOL_ROUNDS=5\r\n")
    monkeypatch.setattr(os, "environ", {"ENV_FILE": str(file)})
    monkeypatch.setattr("environ.Env.ENVIRON", os.environ)
    env = SiteEnv()
    env.read_file(tmp_path / ".env")
    assert env.time_zone("TIME_ZONE", default="UTC") == "Asia/Tokyo"
    assert env.problems == []


def test_file_of_another_encoding_is_refused(monkeypatch, tmp_path):
    """Windows PowerShell's > writes UTF-16."""
    file = tmp_path / "some.env"
    file.write_text("TIME_ZONE=Asia/Tokyo\n", encoding="utf-16")
    monkeypatch.setenv("ENV_FILE", str(file))
    with pytest.raises(SettingsError, match="is not UTF-8; save it with this encoding"):
        read_settings()


def test_folder_of_a_socket_is_read_from_the_address(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://%2Fvar%2Frun%2Fpg:5433/site")
    host = read_settings()["DATABASES"]["default"]["HOST"]
    assert host == "/var/run/pg"


def test_misspelt_settings_are_named(monkeypatch, tmp_path):
    """Lines of the file are named if they are no setting, variables of the environment
    if they resemble one.
    """
    file = tmp_path / "some.env"
    file.write_text("CHAT_MODLE=x\nWHATEVER=1\nHTTPS_PROXY=http://x\n")
    others = {"ENV_FILE": str(file), "OPENAI_APIKEY": "x", "HOME": "/root", "LANG": "C"}
    monkeypatch.setattr(os, "environ", others)
    monkeypatch.setattr("environ.Env.ENVIRON", os.environ)
    env = SiteEnv()
    env.read_file(tmp_path / ".env")
    for name in ("CHAT_MODEL", "CHAT_MODELS", "OPENAI_API_KEY"):
        env.str(name)
    assert list(env.find_slips()) == [
        "CHAT_MODLE is no setting of the site; did you mean CHAT_MODEL?",
        "OPENAI_APIKEY is no setting of the site; did you mean OPENAI_API_KEY?",
        "WHATEVER is no setting of the site.",
    ]


@pytest.mark.parametrize(
    "program",
    [["manage.py", "doctor"], ["scripts/serve.py"], ["-c", "import chatsite.asgi"]],
)
def test_a_program_ends_with_the_sentence_alone(program):
    wrong = {**os.environ, "LOG_LEVEL": "LOUD"}
    command = [sys.executable, *program]
    done = subprocess.run(command, cwd=ROOT, env=wrong, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith("LOG_LEVEL is 'LOUD'; use INFO")


def test_windows_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="On Windows, install WSL"):
        load_settings()
