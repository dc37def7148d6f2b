"""Settings of the site; installations differ only by their environment.

Variables come from the environment or from a .env file beside manage.py: .env.example.
"""

import os
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from chatsite.environment import SiteEnv

BASE_DIR = Path(__file__).resolve().parent.parent

env = SiteEnv()
if os.environ.get("SECRET_KEY"):
    # An environment with a key of its own is a server's: the DEBUG=true that
    # `make setup` wrote into .env for manage.py must not reach it.
    os.environ.setdefault("DEBUG", "false")
env.read_file(BASE_DIR / ".env")

# Core. The defaults are for one user on one machine; with DEBUG off the site
# refuses to start without a SECRET_KEY and ALLOWED_HOSTS of its own.
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str(
    "SECRET_KEY", default="insecure-key-for-development" * DEBUG, is_secret=True
)
# Earlier keys, whose sessions go on until these are taken out.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", is_secret=True)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost"] * DEBUG)
if not SECRET_KEY or not ALLOWED_HOSTS:
    env.problems.append(
        "Set SECRET_KEY and ALLOWED_HOSTS, or DEBUG=true on your own machine. "
        "See .env.example."
    )

# Full origins (scheme, host, port) of the pages that may open a socket or post a form.
SITE_ORIGINS = env.origin_list("SITE_ORIGINS")
CSRF_TRUSTED_ORIGINS = SITE_ORIGINS

# Features that the core imports, an app each: no site is without them.
ALWAYS = [f"chatsite.features.{name}" for name in ("attachments", "tools", "tree")]
# The others that every site has; it works without one that is taken out.
FEATURES = [
    f"chatsite.features.{name}"
    for name in (
        *("code_blocks", "devices", "facts", "feedback", "grounding", "importing"),
        *("installable", "labels", "retention", "review_queue", "rules", "sharing"),
        *("signin", "unread"),
    )
]
# Apps that are off until EXTRAS names them: what it calls them.
CONTRIB = {
    "archives": ["chatsite.contrib.archives"],
    "diagrams": ["chatsite.contrib.diagrams"],
    "endpoint": ["chatsite.contrib.endpoint"],
    "evidence": ["chatsite.contrib.evidence"],
    "lab": [
        "chatsite.contrib.lab.compare",
        "chatsite.contrib.lab.examples",
        "chatsite.contrib.lab.experiments",
        "chatsite.contrib.lab.trials",
    ],
    "mcp": ["chatsite.contrib.mcp"],
    "organisation": ["chatsite.contrib.organisation"],
    "operators": [
        "chatsite.contrib.operators.announcements",
        "chatsite.contrib.operators.budgets",
        "chatsite.contrib.operators.switches",
        "chatsite.contrib.operators.tracing",
    ],
    "quiz": ["chatsite.contrib.quiz"],
    "web": ["chatsite.contrib.web"],
}
EXTRAS = env.some_of("EXTRAS", CONTRIB)
OPTIONAL_APPS = [*FEATURES, *(app for name in EXTRAS for app in CONTRIB[name])]
INSTALLED_APPS = [
    "daphne",
    "chatsite.review.site.ReviewAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "axes",
    "csp",
    "django_htmx",
    "memory",
    "chatsite.turns",
    "chatsite.accounts",
    "chatsite.jobs",
    "chatsite.ops",
    "chatsite.pages",
    "chatsite.review",
    *ALWAYS,
    *OPTIONAL_APPS,
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "chatsite.ops.processor_time.ProcessorTimeMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "chatsite.ops.unavailable.UnavailableMiddleware",
]
if "chatsite.features.sharing" in OPTIONAL_APPS:
    # Not as the innermost, which keeps all of them in one thread.
    MIDDLEWARE.insert(-1, "chatsite.features.sharing.guests.GuestMiddleware")

ROOT_URLCONF = "chatsite.urls"
ASGI_APPLICATION = "chatsite.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "chatsite.accounts.appearance.appearance_of",
            ],
        },
    },
]

# Requests that are worked on at once in a process; others wait (chatsite/ops/load.py).
REQUESTS_AT_ONCE = env.int("REQUESTS_AT_ONCE", default=8, least=1)

# Database: SQLite in the project folder, or any DATABASE_URL.
# PostgreSQL has a connection for each request, one for turns and sockets, and one to
# draw beside them.
DATABASE_POOL_SIZE = env.int(
    "DATABASE_POOL_SIZE", default=REQUESTS_AT_ONCE + 2, least=2
)
DATABASE_URL = env.server_url(
    "DATABASE_URL",
    f"sqlite:///{BASE_DIR / 'db.sqlite3'}",
    *("sqlite", "postgres", "postgresql", "psql", "pgsql"),
    example="postgres://user:password@host:5432/name or sqlite:////folder/db.sqlite3",
)
database = environ.Env.db_url_config(DATABASE_URL)
# A folder with a socket is written with %2F for its slashes.
database["HOST"] = unquote(database["HOST"])
if database["ENGINE"].endswith("sqlite3"):
    # The thread of turns and sockets keeps its connection; those of requests close
    # theirs at the end (chatsite/database.py).
    database["CONN_MAX_AGE"] = None
    # With SQLite's own defaults about half of concurrent transactions fail as locked,
    # and the bytes of deleted texts stay in the file.
    database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
        "PRAGMA secure_delete=ON;",
    }
else:
    # Persistent connections pile up under ASGI; a pool hands them back, and looks at
    # each before it hands it out, so that no thread gets one that a restart has cut.
    database["ENGINE"] = "chatsite.postgresql"
    database["CONN_MAX_AGE"] = 0
    database["CONN_HEALTH_CHECKS"] = True
    is_pooled = database.get("DISABLE_SERVER_SIDE_CURSORS", False)
    database["OPTIONS"] = {
        # Statements are planned once for a connection, not at each execution; a pooler
        # in transaction mode would not find them again.
        "server_side_binding": True,
        "prepare_threshold": None if is_pooled else 5,
        "pool": {
            "min_size": 1,
            "max_size": DATABASE_POOL_SIZE,
            # One gap between two tries to connect has to fit into a turn's lease.
            "timeout": 5,
            "reconnect_timeout": 5,
        },
        "connect_timeout": 5,
        "tcp_user_timeout": 10_000,
        # A process that freezes inside a transaction must not block all the others.
        "options": "-c lock_timeout=2s -c idle_in_transaction_session_timeout=5s",
        **database.get("OPTIONS", {}),
    }
DATABASES = {"default": database}

# Channel layer: hints from one process to others, through Redis; one process alone
# needs none. The pubsub layer has no queue of 100 that drops silently.
REDIS_URL = env.server_url(
    "REDIS_URL",
    "",
    *("redis", "rediss", "unix"),
    example="redis://:password@host:6379/0",
)
# Where the primary is, is asked of these; REDIS_URL has its name in place of a host.
REDIS_SENTINELS = env.server_list("REDIS_SENTINELS")
layer = {"BACKEND": "channels.layers.InMemoryChannelLayer"}
if REDIS_URL:
    layer = {
        "BACKEND": "chatsite.protocol.pubsub.PubSubLayer",
        "CONFIG": {"url": REDIS_URL, "sentinels": REDIS_SENTINELS},
    }
elif REDIS_SENTINELS:
    env.problems.append(
        "REDIS_SENTINELS is set, and REDIS_URL is not; write redis://:password@NAME/0 "
        "with the name under which the sentinels watch the primary."
    )
CHANNEL_LAYERS = {"default": layer}

# People and sessions.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = [
    "chatsite.accounts.passwords.PatientArgon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": name}
    for name in (
        "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "chatsite.accounts.passwords.MinimumLengthValidator",
        "django.contrib.auth.password_validation.CommonPasswordValidator",
        "django.contrib.auth.password_validation.NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "conversation-list"
LOGOUT_REDIRECT_URL = "login"
# Mails: links to a new password, to confirm an address, to an account. Without a server
# there are none, and no page speaks of them.
EMAIL_URL = env.str("EMAIL_URL", is_secret=True)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("MAIL_FROM")
if EMAIL_URL:
    try:
        globals().update(environ.Env.email_url_config(EMAIL_URL))
    except (ImproperlyConfigured, ValueError):
        allowed = "an address like smtp+tls://user:password@host:587"
        env.add_problem("EMAIL_URL", allowed, is_secret=True)
    if "@" not in DEFAULT_FROM_EMAIL:
        allowed = "the address that mails come from, like Windowpane <chat@example.org>"
        env.add_problem("MAIL_FROM", allowed)
    if not SITE_ORIGINS:
        env.problems.append(
            "EMAIL_URL is set, and SITE_ORIGINS is not; set it to the full origins of "
            "the site, such as https://chat.example.org: links in mails begin with the "
            "first."
        )
SIGNUP_ENABLED = env.bool("SIGNUP_ENABLED", default=True)
# Logins of an organisation (chatsite/contrib/organisation/README.md): identity
# providers in a JSON file, and a second factor, which both need an extra; a header in
# which a proxy names the user, and the proxies that are trusted.
providers_file = env.str("SIGNIN_PROVIDERS", default="")
SIGNIN_PROVIDERS = {}
SECOND_FACTOR = env.one_of("SECOND_FACTOR", "no", "offered", "staff")
TRUSTED_USER_HEADER = env.str("TRUSTED_USER_HEADER")
TRUSTED_USER_PROXIES = env.list("TRUSTED_USER_PROXIES")
if "organisation" in EXTRAS:
    organisation = import_module("chatsite.contrib.organisation.configuration")
    organisation.configure(globals(), providers_file)
elif providers_file or SECOND_FACTOR != "no" or TRUSTED_USER_HEADER:
    # Ignored in silence, an admin would be open without its second factor.
    env.problems.append(
        "SIGNIN_PROVIDERS, SECOND_FACTOR or TRUSTED_USER_HEADER is set, and EXTRAS "
        "does not name organisation; add it, or take the setting out."
    )
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_CLIENT_IP_CALLABLE = "chatsite.proxies.client_address"
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "chatsite.accounts.views.locked_out"
AXES_VERBOSE = False
AXES_DISABLE_ACCESS_LOG = True
# Of its three lists, the one that has rows is chatsite/review/admin/people.py's.
AXES_ENABLE_ADMIN = False

# Security headers. Cookies and redirects demand HTTPS unless DEBUG, SITE_HTTPS=false
# or origins that are all plain HTTP.
HTTP_ONLY = bool(SITE_ORIGINS) and all(o.startswith("http://") for o in SITE_ORIGINS)
SITE_HTTPS = env.bool("SITE_HTTPS", default=not DEBUG and not HTTP_ONLY)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = SITE_HTTPS
if SITE_HTTPS:
    # With this prefix no other host of the domain can plant a cookie of its own.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
SECURE_HSTS_SECONDS = 31_536_000 * SITE_HTTPS
# Both reach beyond this site, and browsers remember them: they are asked for by name.
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("HSTS_INCLUDE_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD = env.bool("HSTS_PRELOAD", default=False)
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
BEHIND_PROXY = env.bool("BEHIND_PROXY", default=False)
if BEHIND_PROXY:
    # Only where the proxy sets this header itself and drops what clients send.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "media-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        # All pages but that of diagrams refuse to be in a frame, besides.
        "frame-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# Static files are served by whitenoise: hashed and compressed once collectstatic has
# run, straight from their folders before.
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / env.str("STATIC_ROOT", default="staticfiles")
STATICFILES_DIRS = [
    BASE_DIR / "static",
    ("inter", BASE_DIR / "vendor" / "inter"),
    *([("mermaid", BASE_DIR / "vendor" / "mermaid")] if "diagrams" in EXTRAS else []),
]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "chatsite.staticfiles.BundleFinder",
]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "chatsite.staticfiles.CollectedFilesStorage"},
}

# Languages: the browser's own wish at first, then what was chosen on the page, kept in
# a cookie for strangers too. docs/languages.md says how to add one. An extra brings
# its own catalog: Django itself would look in the folder of each of its apps.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
CONTRIB_DIR = BASE_DIR / "chatsite" / "contrib"
LOCALE_PATHS = [BASE_DIR / "locale", *(CONTRIB_DIR / x / "locale" for x in EXTRAS)]
# In the admin, English dates are written as on the other pages.
FORMAT_MODULE_PATH = "chatsite.formats"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SECURE = SITE_HTTPS
TIME_ZONE = env.time_zone("TIME_ZONE", default="UTC")

# Models. Without a key and without a base URL the demo model answers.
OPENAI_API_KEY = env.provider_key("OPENAI_API_KEY")
OPENAI_BASE_URL = env.http_url("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")
# For clients of Anthropic's API, and for nothing else.
ANTHROPIC_API_KEY = env.provider_key("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = env.http_url("ANTHROPIC_BASE_URL", "http://127.0.0.1:4000")
# Whether requests of other clients are forwarded while nothing can be stored: "open"
# forwards them as they are, and keeps nothing of them.
ENDPOINT_WITHOUT_STORE = env.one_of("ENDPOINT_WITHOUT_STORE", "closed", "open")
# Whether clients may name what the provider keeps (files, containers, conversations) by
# its id: all users of the site share one account there, unless it has one user.
ENDPOINT_PROVIDER_IDS = env.one_of("ENDPOINT_PROVIDER_IDS", "refused", "passed")
# How gateways name the user that they send for: the secret that signs their tokens
# (Open WebUI's FORWARD_USER_INFO_HEADER_JWT_SECRET), or else a header with a user name.
GATEWAY_JWT_SECRET = env.str("GATEWAY_JWT_SECRET", is_secret=True)
# Whether each key of a gateway has a secret of its own, made of that one; and the
# audience that tokens have to name, else they may name one of SITE_ORIGINS or none.
GATEWAY_SECRET_PER_KEY = env.bool("GATEWAY_SECRET_PER_KEY", default=False)
GATEWAY_JWT_AUDIENCE = env.str("GATEWAY_JWT_AUDIENCE")
GATEWAY_USER_HEADER = env.str("GATEWAY_USER_HEADER")
# A user's requests there that are no turns, in each process.
ENDPOINT_REQUESTS_PER_MINUTE = env.int("ENDPOINT_REQUESTS_PER_MINUTE", default=240)
# Whether keys that may read open an MCP server at /mcp, and how often in each process.
MCP_SERVER_ENABLED = env.bool("MCP_SERVER_ENABLED", default=False)
MCP_REQUESTS_PER_MINUTE = env.int("MCP_REQUESTS_PER_MINUTE", default=240)
# Who runs the models, as replies name it; empty = the host of the base URL.
PROVIDER_NAME = env.str("PROVIDER_NAME", default="")
CHAT_MODEL = env.str("CHAT_MODEL", default="")
SUMMARY_MODEL = env.str("SUMMARY_MODEL", default="")
# The model's window in tokens; 0 = what LangChain knows of the model, else 32,000.
CONTEXT_WINDOW = env.int("CONTEXT_WINDOW", default=0)
# Tokens kept free for the reply; of a small window a quarter at most.
REPLY_RESERVE = env.int("REPLY_RESERVE", default=2_000)
# Seconds that a reply waits for a summary of messages that would not fit otherwise.
COMPACTION_WAIT_SECONDS = env.float("COMPACTION_WAIT_SECONDS", default=20.0)
# From 0 to 2, of replies, and of summaries and titles; empty = not sent.
CHAT_TEMPERATURE = env.model_temperature("CHAT_TEMPERATURE", default=None)
SUMMARY_TEMPERATURE = env.model_temperature("SUMMARY_TEMPERATURE", default=0.0)
# Tokens that the provider may write for a summary; 0 = not sent.
SUMMARY_MAX_TOKENS = env.int("SUMMARY_MAX_TOKENS", default=0)
# How the provider takes a request; what it refuses is found out by itself.
STREAM_USAGE = env.bool("STREAM_USAGE", default=True)
SYSTEM_ROLE = env.one_of("SYSTEM_ROLE", "system", "developer", "user")
# Seconds: until a reply begins (models may think first), between two pieces of it, and
# for the whole of it.
MODEL_FIRST_TOKEN_TIMEOUT = env.time_limit("MODEL_FIRST_TOKEN_TIMEOUT", default=300.0)
MODEL_IDLE_TIMEOUT = env.time_limit("MODEL_IDLE_TIMEOUT", default=60.0)
MODEL_TOTAL_TIMEOUT = env.time_limit("MODEL_TOTAL_TIMEOUT", default=600.0)
SUMMARY_TOTAL_TIMEOUT = env.time_limit("SUMMARY_TOTAL_TIMEOUT", default=180.0)
# Attempts at one request before its first token; each is counted and stored.
MODEL_MAX_ATTEMPTS = env.int("MODEL_MAX_ATTEMPTS", default=3, least=1)
# Some servers end a complete reply without a finish reason; set to false for them.
FINISH_REASON_REQUIRED = env.bool("FINISH_REASON_REQUIRED", default=True)
# Whether the provider can hold a summary to a JSON schema; not every server can.
STRUCTURED_OUTPUT = env.bool("STRUCTURED_OUTPUT", default=not OPENAI_BASE_URL)
# What a turn may ask of tools: replies that call some, calls in all, and seconds for
# each call. A question for consent and a result that comes later have this long.
TOOL_ROUNDS = env.int("TOOL_ROUNDS", default=60)
TOOL_CALLS = env.int("TOOL_CALLS", default=90)
# A conversation with more tools than these offers a search for them; 0: never.
TOOLS_ON_DEMAND = env.int("TOOLS_ON_DEMAND", default=40)
TOOL_SECONDS = env.time_limit("TOOL_SECONDS", default=30.0)
CONSENT_SECONDS = env.time_limit("CONSENT_SECONDS", default=86_400.0)
TOOL_DEADLINE_SECONDS = env.time_limit("TOOL_DEADLINE_SECONDS", default=604_800.0)
# Tokens per second of the demo model.
DEMO_TOKENS_PER_SECOND = env.float("DEMO_TOKENS_PER_SECOND", default=40.0)

# Prices of a million tokens in dollars, for the savings on the page; 0 = not shown.
PRICE_INPUT = env.float("PRICE_INPUT", default=0.0)
PRICE_OUTPUT = env.float("PRICE_OUTPUT", default=0.0)
# How long a provider keeps the beginning of a request that is not sent again.
PROMPT_CACHE_SECONDS = env.float("PROMPT_CACHE_SECONDS", default=300.0)

SYSTEM_PROMPT = env.str(
    "SYSTEM_PROMPT",
    default="You are a helpful assistant. Answer in the language of the user.",
)

# What else people may choose for their conversations, beside CHAT_MODEL.
CHAT_MODELS = env.list("CHAT_MODELS", default=[])
# Several providers at once, in a TOML file: docs/settings.md.
PROVIDERS = ()
PROVIDERS_FILE = env.str("PROVIDERS_FILE")
# Let the model name a conversation after its first reply.
TITLES_ENABLED = env.bool("TITLES_ENABLED", default=True)

# People's data. What staff may read is said on every account page.
STAFF_CAN_READ_CHATS = env.bool("STAFF_CAN_READ_CHATS", default=True)
# Whether people see there which of their conversations staff have read.
STAFF_ACCESS_SHOWN = env.one_of("STAFF_ACCESS_SHOWN", "staff", "no", "names")
# Whether people may make links that show a conversation to strangers; without, those
# that there are open nothing. And requests a minute of one stranger's address.
SHARE_LINKS = env.bool("SHARE_LINKS", default=True)
SHARE_REQUESTS_PER_MINUTE = env.int("SHARE_REQUESTS_PER_MINUTE", default=120)
# Readers without an account who may try a copy at once; 0: no link offers copies.
SHARE_GUESTS = env.int("SHARE_GUESTS", default=0, most=1000)
# Proves that stored rows are as they were written; SECRET_KEY where it is empty.
# SEAL_KEY is its earlier name: an installation that has it keeps its signatures.
SIGNING_KEY = env.str(
    "SIGNING_KEY", default=os.environ.get("SEAL_KEY", ""), is_secret=True
)
# Days until what is not used any more is deleted; 0 = never. Of conversations since
# they were last used, of attempts to log in, of the logs of staff's acts, and of
# records of what was erased.
RETENTION_DAYS = env.int("RETENTION_DAYS", default=0, most=36_500)
# Days in which conversations that were deleted so can be brought back.
RETENTION_UNDO_DAYS = env.int("RETENTION_UNDO_DAYS", default=7, most=365)
RETENTION_LOGIN_DAYS = env.int("RETENTION_LOGIN_DAYS", default=0, most=36_500)
RETENTION_LOG_DAYS = env.int("RETENTION_LOG_DAYS", default=0, most=36_500)
RETENTION_RECORD_DAYS = env.int("RETENTION_RECORD_DAYS", default=0, most=36_500)
# An import that is larger is refused before anything of it is stored.
IMPORT_MAX_MB = env.int("IMPORT_MAX_MB", default=50, least=1)
# Limits of the process that reads a file, and how many of them the site has at once.
IMPORT_MEMORY_MB = env.int("IMPORT_MEMORY_MB", default=1_500, least=100)
IMPORT_MAX_SECONDS = env.time_limit("IMPORT_MAX_SECONDS", default=900.0)
IMPORTS_AT_ONCE = env.int("IMPORTS_AT_ONCE", default=2, least=1)
IMPORT_MAX_CONVERSATIONS = 2_000
IMPORT_MAX_MESSAGES = 20_000  # of one conversation
IMPORT_MAX_CHARS = 200_000  # of one message

# Turns. A process that dies loses its turns to another after one lease and one sweep.
MESSAGE_MAX_CHARS = 32_000
# Files that are attached to messages: their size, and how many tokens of those of one
# message a model gets; the whole texts are stored, and can be searched and read.
ATTACHMENT_MAX_MB = env.int("ATTACHMENT_MAX_MB", default=20, least=1)
ATTACHMENT_MAX_CHARS = env.int("ATTACHMENT_MAX_CHARS", default=5_000_000, least=200_000)
ATTACHMENT_TOKENS = env.int("ATTACHMENT_TOKENS", default=6_000, least=200)
# Of a text that is too long for its message: what of its passages goes with a request,
# and how many millions of characters of such texts a user can have.
ATTACHMENT_PASSAGE_TOKENS = env.int("ATTACHMENT_PASSAGE_TOKENS", default=2_000)
LONG_FILES_PER_PERSON_MB = env.int("LONG_FILES_PER_PERSON_MB", default=100)
# Images among them: how large they are kept and sent, what of them is read, and how
# many megabytes a user can have.
IMAGE_MAX_SIDE = env.int("IMAGE_MAX_SIDE", default=2_048, least=256)
IMAGE_MAX_MEGAPIXELS = env.int("IMAGE_MAX_MEGAPIXELS", default=64, least=1)
IMAGE_MAX_SECONDS = env.int("IMAGE_MAX_SECONDS", default=10, least=1)
IMAGE_MEMORY_MB = env.int("IMAGE_MEMORY_MB", default=1_024, least=128)
# Models that take images, as patterns ("gpt-5.4*"); none: those of OpenAI that do.
IMAGE_MODELS = env.list("IMAGE_MODELS", default=[])
IMAGES_PER_PERSON_MB = env.int("IMAGES_PER_PERSON_MB", default=500)
# Limits of the process that reads a PDF, and how many a process of the site has.
PDF_MAX_SECONDS = env.int("PDF_MAX_SECONDS", default=15, least=1)
PDF_MEMORY_MB = env.int("PDF_MEMORY_MB", default=512, least=100)
PDFS_AT_ONCE = env.int("PDFS_AT_ONCE", default=2, least=1)
# The lease is renewed every second (chatsite/turns/checkpoints.py).
TURN_LEASE_SECONDS = env.float("TURN_LEASE_SECONDS", default=10.0, least=2)
TURN_SWEEP_SECONDS = env.float("TURN_SWEEP_SECONDS", default=1.0, least=0.1, most=60)
TURN_MAX_ATTEMPTS = 2

# Tools that models may call, beside the built-in ones: dotted paths of functions and
# LangChain tools, and a file of MCP servers in the form that all MCP clients read.
TOOLS = env.list("TOOLS", default=[])
MCP_SERVERS = env.str("MCP_SERVERS", default="")
# Bytes of one message of an MCP server; a longer one ends the connection.
MCP_MESSAGE_BYTES = env.int("MCP_MESSAGE_BYTES", default=16_000_000, least=10_000)
# The web: a SearXNG, or a function that searches; whether pages are read, and in which
# networks besides the public ones. Of each page seconds, bytes, and tokens that a model
# gets; calls of one user in an hour, in each process.
WEB_SEARCH = env.str("WEB_SEARCH")
WEB_PAGES_ENABLED = env.bool("WEB_PAGES_ENABLED", default=False)
WEB_NETWORKS = env.network_list("WEB_NETWORKS")
WEB_SECONDS = env.time_limit("WEB_SECONDS", default=20.0)
WEB_MAX_BYTES = env.int("WEB_MAX_BYTES", default=5_000_000, least=1_000)
WEB_PAGE_TOKENS = env.int("WEB_PAGE_TOKENS", default=4_000, least=200)
WEB_CALLS_PER_HOUR = env.int("WEB_CALLS_PER_HOUR", default=120)
# Downloads of evidence by one user in a minute, in each process.
EVIDENCE_PER_MINUTE = env.int("EVIDENCE_PER_MINUTE", default=60)
# The file of the daily roots of signed files; without it none is recorded.
EVIDENCE_ROOT_FILE = env.str("EVIDENCE_ROOT_FILE")
# Bytes of the files in one result that are kept for people.
TOOL_FILE_BYTES = env.int("TOOL_FILE_BYTES", default=5_000_000, least=0)
# What new conversations do with facts about their users, who can choose otherwise.
FACTS = env.one_of("FACTS", "on", "use", "learn", "off")
# Names of the tools that new conversations begin with.
DEFAULT_TOOLS = env.list("DEFAULT_TOOLS", default=[])
# Tokens of a tool's result that a model gets; the rest it can read with another call.
TOOL_RESULT_TOKENS = env.int("TOOL_RESULT_TOKENS", default=1_000, least=200)
# What it gets of a longer one: its beginning, or a summary.
TOOL_RESULTS = env.one_of("TOOL_RESULTS", "cut", "summarise")

# Policy experiments in the admin that run at once on the whole site; 0 = none.
EXPERIMENTS_AT_ONCE = env.int("EXPERIMENTS_AT_ONCE", default=2)

# Limits per user, counted over all processes; 0 = no limit. The defaults are beyond
# what a user does by hand and stop programs that run away.
MESSAGES_PER_MINUTE = env.int("MESSAGES_PER_MINUTE", default=60)
CONVERSATIONS_PER_MINUTE = env.int("CONVERSATIONS_PER_MINUTE", default=30)
TOKENS_PER_DAY = env.int("TOKENS_PER_DAY", default=0)
# Requests beside replies, for summaries, experiments and titles: each user's a
# minute, and those of a process at once, for one user and for all.
SUMMARIES_PER_MINUTE = env.int("SUMMARIES_PER_MINUTE", default=60)
SUMMARIES_PER_USER = env.int("SUMMARIES_PER_USER", default=2)
SUMMARIES_AT_ONCE = env.int("SUMMARIES_AT_ONCE", default=4)
TURNS_PER_USER = env.int("TURNS_PER_USER", default=64)
QUEUED_PER_USER = env.int("QUEUED_PER_USER", default=500)
# Calls of tools whose results come later, such as reminders.
LATE_CALLS_PER_USER = env.int("LATE_CALLS_PER_USER", default=100)
SOCKETS_PER_USER = env.int("SOCKETS_PER_USER", default=2_000)
# Percent of each process's time that one user, shared link or address may have for
# long; sockets wait for what is beyond, and pages are refused.
PROCESSOR_SHARE_PER_USER = env.float("PROCESSOR_SHARE_PER_USER", default=50.0, most=100)
# Bytes that may wait for one reader; one that lets more wait is disconnected.
SOCKET_BUFFER_BYTES = env.int("SOCKET_BUFFER_BYTES", default=2 * 1024 * 1024)

# Watching. Without a token /metrics does not exist.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="", is_secret=True)

# The collector of OpenTelemetry that gets a span of each request to a model.
OTEL_EXPORTER_OTLP_ENDPOINT = env.http_url(
    "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"
)

# Log records: words on a line, or an object of JSON on a line.
LOG_LEVEL = env.one_of("LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL")
LOG_FORMAT = env.one_of("LOG_FORMAT", "line", "json")
# With DEBUG the page of an error shows all settings and variables, without secrets.
DEFAULT_EXCEPTION_REPORTER = "chatsite.ops.error_page.ExceptionReporter"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "chatsite.ops.logs.LineFormatter", "debug": DEBUG},
        "json": {"()": "chatsite.ops.logs.JsonFormatter"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        # Django's own handlers would write the same record again.
        "django": {"handlers": [], "level": "WARNING"},
        # Says every second that Redis is away; chatsite.protocol.layer says it once.
        "channels_redis": {"level": "CRITICAL"},
        **{name: {"level": LOG_LEVEL} for name in ("chatsite", "memory")},
    },
}

# Last, as it has nothing to say that other settings say.
if PROVIDERS_FILE:
    provider_file = import_module("chatsite.llm.provider_file")
    PROVIDERS, found = provider_file.read_provider_file(
        PROVIDERS_FILE, {"CHAT_MODEL": CHAT_MODEL, "SUMMARY_MODEL": SUMMARY_MODEL}
    )
    env.problems += [*found, *provider_file.find_short_form(env.settings)]
    env.names_of_others.update(each.key_env for each in PROVIDERS)

env.raise_problems()
