"""Settings of the site. Every value that differs between installations comes from
the environment (or from a .env file beside manage.py); see .env.example.
"""

from datetime import timedelta
from pathlib import Path

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
if (BASE_DIR / ".env").exists():
    env.read_env(BASE_DIR / ".env")

# Core. The defaults are for one person on one machine; with DEBUG off the site
# refuses to start without a SECRET_KEY and ALLOWED_HOSTS of its own.
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="insecure-key-for-development" * DEBUG)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost"] * DEBUG)
if not SECRET_KEY or not ALLOWED_HOSTS:
    raise ImproperlyConfigured(
        "Set SECRET_KEY and ALLOWED_HOSTS, or DEBUG=true on your own machine. "
        "See .env.example."
    )

# Full origins (scheme, host, port) of the pages that may open a socket or post a form.
SITE_ORIGINS = env.list("SITE_ORIGINS", default=[])
CSRF_TRUSTED_ORIGINS = SITE_ORIGINS

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
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
    "chatsite.chat",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

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
            ],
        },
    },
]

# Database: SQLite in the project folder, or any DATABASE_URL.
DATABASES = {
    "default": env.db("DATABASE_URL", default=f"sqlite:///{BASE_DIR / 'db.sqlite3'}")
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # With SQLite's own defaults about half of concurrent transactions fail as locked.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    # Persistent connections pile up under ASGI; a pool hands them back.
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"]["OPTIONS"] = {
        "pool": {"min_size": 1, "max_size": env.int("DATABASE_POOL_SIZE", default=10)}
    }

# Channel layer: hints between sockets and turns. In memory for one process, Redis
# for several. The pubsub layer has no queue of 100 that drops silently.
REDIS_URL = env.str("REDIS_URL", default="")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # redis-py 8 ends idle reads after 5 s unless told otherwise.
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": 15}]},
    }
    if REDIS_URL
    else {
        "BACKEND": "channels.layers.InMemoryChannelLayer",
        "CONFIG": {"capacity": 5000},
    }
}

# People and sessions.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "conversation-list"
LOGOUT_REDIRECT_URL = "login"
SIGNUP_ENABLED = env.bool("SIGNUP_ENABLED", default=True)
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "registration/locked_out.html"
AXES_VERBOSE = False
AXES_DISABLE_ACCESS_LOG = True

# Security headers. Cookies and redirects demand HTTPS unless DEBUG, SITE_HTTPS=false
# or origins that are all plain HTTP.
HTTP_ONLY = bool(SITE_ORIGINS) and all(o.startswith("http://") for o in SITE_ORIGINS)
SITE_HTTPS = env.bool("SITE_HTTPS", default=not DEBUG and not HTTP_ONLY)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = SITE_HTTPS
SECURE_HSTS_SECONDS = 31_536_000 * SITE_HTTPS
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SITE_HTTPS
SECURE_REFERRER_POLICY = "same-origin"
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
if env.bool("BEHIND_PROXY", default=False):
    # Only where the proxy sets this header itself and drops what clients send.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_AGE = 14 * 24 * 3600
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# Static files are served by whitenoise: hashed and compressed once collectstatic has
# run, straight from their folders before.
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "chatsite.staticfiles.CollectedFilesStorage"},
}

LANGUAGE_CODE = "en"
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_I18N = True
USE_TZ = True

# Models. Without a key and without a base URL the demo model answers.
OPENAI_API_KEY = env.str("OPENAI_API_KEY", default="")
OPENAI_BASE_URL = env.str("OPENAI_BASE_URL", default="")
CHAT_MODEL = env.str("CHAT_MODEL", default="")
SUMMARY_MODEL = env.str("SUMMARY_MODEL", default="")
# The model's window in tokens; 0 = what LangChain knows of the model, else 32,000.
CONTEXT_WINDOW = env.int("CONTEXT_WINDOW", default=0)
# Tokens kept free for the reply.
REPLY_RESERVE = env.int("REPLY_RESERVE", default=2_000)
# Seconds: between two pieces of a reply, and for the whole of it.
MODEL_IDLE_TIMEOUT = env.float("MODEL_IDLE_TIMEOUT", default=60.0)
MODEL_TOTAL_TIMEOUT = env.float("MODEL_TOTAL_TIMEOUT", default=600.0)
SUMMARY_TOTAL_TIMEOUT = env.float("SUMMARY_TOTAL_TIMEOUT", default=180.0)
# Attempts at one request before its first token; each is counted and stored.
MODEL_MAX_ATTEMPTS = env.int("MODEL_MAX_ATTEMPTS", default=3)
# Some servers end a complete reply without a finish reason; set to false for them.
FINISH_REASON_REQUIRED = env.bool("FINISH_REASON_REQUIRED", default=True)
# Whether the provider can hold a summary to a JSON schema; not every server can.
STRUCTURED_OUTPUT = env.bool("STRUCTURED_OUTPUT", default=not OPENAI_BASE_URL)
# Tokens per second of the demo model.
DEMO_TOKENS_PER_SECOND = env.float("DEMO_TOKENS_PER_SECOND", default=40.0)

SYSTEM_PROMPT = env.str(
    "SYSTEM_PROMPT",
    default="You are a helpful assistant. Answer in the language of the user.",
)

# Turns. A process that dies loses its turns to another after one lease and one sweep.
MESSAGE_MAX_CHARS = 32_000
TURN_LEASE_SECONDS = env.float("TURN_LEASE_SECONDS", default=10.0)
TURN_SWEEP_SECONDS = env.float("TURN_SWEEP_SECONDS", default=2.0)
TURN_MAX_ATTEMPTS = 2

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        # One record is one line: text from outside is logged with %r or not at all.
        "line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        # Django's own handlers would write the same record again.
        "django": {"handlers": [], "level": "WARNING"},
        **{
            name: {"level": env.str("LOG_LEVEL", default="INFO")}
            for name in ("chatsite", "memory")
        },
    },
}
