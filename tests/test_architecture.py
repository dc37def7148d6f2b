"""The architecture: who may import whom, what is documented, what the checks say."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings
from django.dispatch import Signal

from chatsite import plugins, slots
from chatsite.settings import env

from . import warm_python

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("chatsite", "memory")
ENGINE_MAY_IMPORT = {"pydantic", "langchain", "langchain_core"}
PRODUCTION = {
    "DEBUG": "false",
    "SECRET_KEY": "".join(chr(33 + n * 37 % 90) for n in range(80)),
    "ALLOWED_HOSTS": "chat.example.org",
    "SITE_ORIGINS": "https://chat.example.org",
    "SITE_HTTPS": "true",
    "DATABASE_URL": "postgres://windowpane@127.0.0.1:5432/windowpane",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "OPENAI_API_KEY": "sk-placeholder",
}


# From top to bottom; what has no place here (settings, URLs) may import anything.
LAYERS = (
    *("review", "live", "pages", "ops", "accounts", "jobs", "turns"),
    *("protocol", "llm"),
)
# The same for the modules and packages of `memory`. The longest name that fits counts:
# signatures are a field of the models, the audit reads everything.
MEMORY_LAYERS = (
    *("management", "integrity.audit", "library", "actions", "compaction", "bundle"),
    *("staging", "view.rebuilding", "context", "transcript", "images", "rules"),
    *("files", "search", "view"),
    "versions",
    "prompts",
    *("agent_threads", "calibration", "models", "integrity", "leases", "database"),
    *("sql", "ranges"),
    *("evaluation", "agents", "engine.summaries", "engine"),
)
# Apps of contrib that bring diagrams or readers know the app that calls them.
BUILDS_ON = {
    "chatsite.contrib.archives": "chatsite.features.importing",
    "chatsite.contrib.diagrams": "chatsite.features.code_blocks",
    "chatsite.contrib.evidence": "chatsite.features.sharing",
    "chatsite.contrib.quiz": "chatsite.features.sharing",
}
MOST_MODULES = 15
# Of every app, with all that its settings switch on.
EVERYTHING = {
    "DEBUG": "true",
    "DJANGO_SETTINGS_MODULE": "chatsite.settings",
    "EXTRAS": "all",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    "SECOND_FACTOR": "staff",
}
MOST_SEAMS = 20
# Of the core, as its apps use them.
MOST_SYMBOLS, MOST_USED_MODULES = 331, 93
# What puts the parts of an app or of the site together: it imports them all.
PUT_TOGETHER = ("apps", "urls", "settings", "asgi")
# Django's own folders, and the roots of the two trees, which load nothing.
SELF_EXPLAINING = {"management", "commands", "templatetags", "chatsite", "memory"}


def layer_of(name):
    """The place of a module's package in LAYERS, or None."""
    package = name.removeprefix("chatsite.").partition(".")[0]
    is_inside = name.startswith("chatsite.") and package in LAYERS
    return LAYERS.index(package) if is_inside else None


def memory_layer_of(name):
    """The place of a module or package of the memory in MEMORY_LAYERS, or None."""
    name = name.removeprefix("memory.") + "."
    fitting = [layer for layer in MEMORY_LAYERS if name.startswith(f"{layer}.")]
    return MEMORY_LAYERS.index(max(fitting, key=len)) if fitting else None


def product():
    return [path for package in PACKAGES for path in sources(package)]


def sources(folder):
    paths = (ROOT / folder).rglob("*.py")
    return sorted(p for p in paths if "migrations" not in p.parts)


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path, walk=ast.walk):
    """Full names of everything a file imports, relative imports resolved."""
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def absolute_imports_of(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module


def find_module(name, files):
    """The module that has this name, or in which it is defined."""
    while name and name not in files:
        name = name.rpartition(".")[0]
    return name or None


def is_reached(name, imported):
    """Return whether following the imports of a module leads back to it."""
    seen, left = {name}, [*imported[name]]
    while left:
        module = left.pop()
        if module not in seen:
            seen.add(module)
            left += imported.get(module, ())
    return any(name in imported.get(each, ()) for each in seen - {name})


def walk_run(tree):
    """The nodes of a module but those that only a type checker reads."""
    left = [tree]
    while left:
        node = left.pop()
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield node
            left += ast.iter_child_nodes(node)


def find_imports(folder, prefixes):
    """ "file imports name" for every import below one of the prefixes."""
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(folder)
        for name in imports_of(path)
        if any(name == p or name.startswith(p + ".") for p in prefixes)
    ]


def run(*command, **env):
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def manage(*arguments, **env):
    command = [str(ROOT / "manage.py"), *arguments]
    return warm_python.run(command, {**os.environ, **env})


class TestSeams:
    """Contacts of an optional app with the core, or with another app."""

    def test_apps_fill_few_lists(self):
        """Every list, dictionary, signal or strategy of a module counts that an app
        fills, be it by a function. The number is what was reached; it may only fall."""
        done = run("-c", "from tests import seams; seams.show()", **EVERYTHING)
        assert done.returncode == 0, done.stderr
        seams = json.loads(done.stdout)
        assert "chatsite.slots._parts" in seams
        assert len(seams) <= MOST_SEAMS, seams


def uses_of(path):
    """Full names of what a file uses of other modules: what it imports of each, and of
    a module that it imports, the attributes."""
    named = {name.rpartition(".")[2]: name for name in imports_of(path)}
    modules = {each: name for each, name in named.items() if name in names_of_modules()}
    read = {
        f"{modules[node.value.id]}.{node.attr}"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules
    }
    return read | {*imports_of(path)} - {*modules.values()}


@cache
def names_of_modules():
    return {module_of(path) for path in product()}


def core_symbols():
    """Return the symbols of the core that optional apps use.

    Those of the memory are apart: its public functions are for all.
    """
    apps = tuple(f"{app}." for app in settings.OPTIONAL_APPS)
    paths = [path for path in product() if f"{module_of(path)}.".startswith(apps)]
    used = {name for path in paths for name in uses_of(path)}
    return {name for name in used if name.startswith("chatsite.") and is_core(name)}


def is_core(name):
    always = tuple(f"{app}." for app in settings.ALWAYS)
    above = ("chatsite.features.", "chatsite.contrib.")
    return name.startswith(always) or not f"{name}.".startswith(above)


class TestSurface:
    """The surface between the core and its apps. The numbers are those that were
    reached; they may only fall."""

    def test_few_functions_and_signals_take_what_apps_give(self):
        takers = [
            name
            for module in (plugins, slots)
            for name in vars(module)
            if name.startswith(("register", "add_")) or name == "mount"
        ]
        signals = [n for n, each in vars(plugins).items() if isinstance(each, Signal)]
        signals.remove("message_deleted")  # of the memory
        assert len(takers) <= 10
        assert len(signals) <= 6
        assert len(takers) + len(signals) <= 16

    def test_apps_use_few_symbols_of_the_core(self):
        symbols = core_symbols()
        modules = {find_module(name, names_of_modules()) for name in symbols}
        assert len(symbols) <= MOST_SYMBOLS
        assert len(modules) <= MOST_USED_MODULES


class TestImports:
    def test_the_memory_knows_no_web_page(self):
        assert find_imports("memory", ["chatsite"]) == []

    def test_the_engine_knows_neither_django_nor_the_tables(self):
        found = [
            f"{path.relative_to(ROOT)} imports {name}"
            for path in sources("memory/engine")
            for name in imports_of(path)
            if not is_allowed_in_engine(name)
        ]
        assert found == []

    def test_the_engine_and_the_agents_never_name_their_package(self):
        # A wheel installs them as `windowpane_memory`.
        named = [
            f"{path.relative_to(ROOT)} imports {name}"
            for folder in ("memory/agents", "memory/engine")
            for path in sources(folder)
            for name in absolute_imports_of(path)
            if name.partition(".")[0] == "memory"
        ]
        assert named == []

    def test_the_rule_of_identity_is_pure_python(self):
        # Others build it too, and its benchmark runs it without a site.
        folder = "chatsite/contrib/endpoint/identity"
        found = [
            f"{path.relative_to(ROOT)} imports {name}"
            for path in sources(folder)
            for name in imports_of(path)
            if not name.startswith(module_of(ROOT / folder / "__init__.py"))
            and name.partition(".")[0] not in sys.stdlib_module_names
        ]
        assert found == []

    def test_packages_import_downward_only(self):
        upward = []
        for path in sources("chatsite"):
            here = layer_of(module_of(path))
            for name in imports_of(path):
                there = layer_of(name)
                if here is not None and there is not None and there < here:
                    upward.append(f"{path.relative_to(ROOT)} imports {name}")
        assert upward == []

    @pytest.mark.parametrize("package", PACKAGES)
    def test_modules_import_in_no_circle(self, package):
        """Imports in functions count: they hide a circle from Python, not from who
        reads one module and has to know the other."""
        files = {module_of(path): path for path in sources(package)}
        imported = {
            name: {find_module(each, files) for each in imports_of(path, walk_run)}
            for name, path in files.items()
            if path.stem not in PUT_TOGETHER
        }
        circles = [name for name in imported if is_reached(name, imported)]
        assert circles == []

    def test_the_memory_imports_downward_only(self):
        upward = []
        for path in sources("memory"):
            here = memory_layer_of(module_of(path))
            assert here is not None or path.stem in ("__init__", "apps"), path
            for name in imports_of(path):
                there = memory_layer_of(name) if name.startswith("memory.") else None
                if there is not None and there < here:
                    upward.append(f"{path.relative_to(ROOT)} imports {name}")
        assert upward == []

    def test_the_core_imports_no_app(self):
        folders = [f"{app.replace('.', '/')}/" for app in settings.OPTIONAL_APPS]
        # For one release, what tools of operators import has its former place, too.
        folders.append("chatsite/tools/")
        found = [
            f for top in PACKAGES for f in find_imports(top, settings.OPTIONAL_APPS)
        ]
        assert [line for line in found if not line.startswith(tuple(folders))] == []

    @pytest.mark.parametrize("app", settings.OPTIONAL_APPS)
    def test_app_imports_no_other_app(self, app):
        known = {app, BUILDS_ON.get(app)}
        others = [other for other in settings.OPTIONAL_APPS if other not in known]
        assert find_imports(app.replace(".", "/"), others) == []

    @pytest.mark.parametrize("app", [*settings.ALWAYS, *settings.OPTIONAL_APPS])
    def test_an_app_is_one_folder_with_its_tests_and_its_page(self, app):
        folder, label = app.replace(".", "/"), app.rpartition(".")[2]
        wanted = [f"{folder}/apps.py", f"tests/{folder}/__init__.py"]
        assert [path for path in wanted if not (ROOT / path).exists()] == []
        pages = (f"docs/features/{label}.md", f"{folder}/README.md")
        assert [path for path in pages if (ROOT / path).exists()]

    def test_the_models_know_no_conversation(self):
        known = ["memory", "chatsite.turns", "chatsite.jobs", "django.db"]
        found = find_imports("chatsite/llm", known)
        # The engine knows messages, but no conversation.
        assert [line for line in found if " memory.engine." not in line] == []

    def test_folders_have_a_limited_number_of_modules(self):
        folders = Counter(path.parent for path in product() if path.stem != "__init__")
        assert {str(f): n for f, n in folders.items() if n > MOST_MODULES} == {}

    def test_every_package_says_what_belongs_there(self):
        inits = [path for path in product() if path.stem == "__init__"]
        silent = [
            str(path.parent.relative_to(ROOT))
            for path in inits
            if path.parent.name not in SELF_EXPLAINING
            and not ast.get_docstring(tree_of(path))
        ]
        assert silent == []

    @pytest.mark.parametrize("name", ["consumer.py", "outbox.py"])
    def test_the_consumer_touches_no_orm_prompt_or_model(self, name):
        path = ROOT / "chatsite" / "live" / name
        forbidden = ("django.db", "chatsite.llm", "memory", "chatsite.turns.models")
        # The names of the database's errors are no rows.
        names = [n for n in imports_of(path) if not n.startswith("memory.database.")]
        assert [n for n in names if n.startswith(forbidden)] == []

    def test_product_does_not_import_the_tests(self):
        for package in PACKAGES:
            assert find_imports(package, ["tests", "bench"]) == []

    def test_product_does_not_unpickle_objects(self):
        forbidden = ["pickle", "marshal", "shelve", "langchain_core.load"]
        for package in PACKAGES:
            assert find_imports(package, forbidden) == []

    def test_provider_is_imported_by_the_models_only(self):
        providers = ["openai", "langchain_openai"]
        found = [f for f in find_imports("chatsite", providers) if "/llm/" not in f]
        assert found == []
        assert find_imports("memory", providers) == []

    def test_importing_the_engine_does_not_load_django(self):
        modules = ", ".join(map(module_of, sources("memory/engine")))
        code = f"import sys, {modules}; sys.exit('django' in sys.modules)"
        done = run("-c", code)
        assert done.returncode == 0, done.stderr

    def test_the_memory_package_loads_nothing(self):
        assert (ROOT / "memory" / "__init__.py").read_text() == ""


def is_allowed_in_engine(name):
    root = name.partition(".")[0]
    inside = name.startswith("memory.engine")
    return inside or root in sys.stdlib_module_names or root in ENGINE_MAY_IMPORT


class TestDocumentation:
    def settings(self):
        return sorted(env.settings)

    def test_settings_are_found_in_the_documentation(self):
        assert "OPENAI_BASE_URL" in self.settings()

    def test_every_setting_is_in_the_example(self):
        example = (ROOT / ".env.example").read_text()
        documented = re.findall(r"(?m)^# .+\n#([A-Z_]+)=", example)
        assert sorted(documented) == self.settings()

    def test_the_example_has_the_defaults(self):
        """Settings of one value that depend on no other setting are compared."""
        example = (ROOT / ".env.example").read_text()
        given = dict(re.findall(r"(?m)^#([A-Z_]+)=(.*)$", example))
        depends = {"STRUCTURED_OUTPUT", "SITE_HTTPS", "ENV_FILE", "ALLOWED_HOSTS"}
        wrong = [
            name
            for name, setting in env.settings.items()
            if name not in depends and not setting.is_secret
            if setting.parse(given[name]) != setting.default
        ]
        assert wrong == []

    def test_every_setting_is_documented(self):
        page = (ROOT / "docs" / "settings.md").read_text()
        rows = re.findall(r"(?m)^\| (`[A-Z].+?) \|", page)
        documented = re.findall(r"`([A-Z_]+)`", " ".join(rows))
        assert sorted(documented) == self.settings()

    def test_every_module_says_what_it_is_for(self):
        missing = [
            str(path.relative_to(ROOT))
            for package in PACKAGES
            for path in sources(package)
            if path.read_text() and not ast.get_docstring(tree_of(path))
        ]
        assert missing == []

    def test_every_function_says_what_it_returns(self):
        missing = [
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            for package in PACKAGES
            for path in sources(package)
            for node in ast.walk(tree_of(path))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.returns is None
        ]
        assert missing == []

    def test_names_of_functions_can_be_searched_for(self):
        """Few functions of a module have a namesake, or a name of a single word."""
        names = Counter(
            node.name
            for path in product()
            for node in tree_of(path).body
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        )
        namesakes = {name: count for name, count in names.items() if count > 1}
        one_word = {name: n for name, n in names.items() if "_" not in name.strip("_")}
        assert sum(namesakes.values()) <= 0.06 * names.total(), namesakes
        assert sum(one_word.values()) <= 0.1 * names.total(), one_word


class TestChecks:
    def test_models_have_all_their_migrations(self):
        done = manage("makemigrations", "--check", "--dry-run")
        assert done.returncode == 0, done.stdout

    def test_hsts_reaches_beyond_this_host_only_where_it_is_asked_to(self):
        code = (
            "from chatsite import settings as s; print(s.SECURE_HSTS_SECONDS, "
            "s.SECURE_HSTS_INCLUDE_SUBDOMAINS, s.SECURE_HSTS_PRELOAD)"
        )

        def printed(**env):
            environment = {**os.environ, **PRODUCTION, **env}
            command = [sys.executable, "-c", code]
            return subprocess.check_output(
                command, cwd=ROOT, env=environment, text=True
            ).strip()

        assert printed() == "31536000 False False"
        asked = {"HSTS_INCLUDE_SUBDOMAINS": "true", "HSTS_PRELOAD": "true"}
        assert printed(**asked) == "31536000 True True"

    def test_production_settings_have_no_issue(self):
        arguments = ["check", "--deploy", "--fail-level", "INFO"]
        done = manage(*arguments, **PRODUCTION)
        assert done.returncode == 0, done.stderr
        assert "no issues" in done.stdout

    @pytest.mark.parametrize("name", ["SECRET_KEY", "ALLOWED_HOSTS"])
    def test_site_refuses_to_start_without_its_secrets(self, name):
        done = manage("check", **{**PRODUCTION, name: ""})
        assert done.returncode != 0
        assert "Set SECRET_KEY and ALLOWED_HOSTS" in done.stderr

    def test_invalid_database_url_never_means_the_file_of_the_project(self):
        code = "from chatsite.settings import DATABASES as d; print(d['default'])"
        done = run("-c", code, DEBUG="true", DATABASE_URL="")
        assert "db.sqlite3" in done.stdout, done.stderr


class TestLeftovers:
    def test_tests_have_no_leftovers_of_debugging(self):
        marks = r"pytest\.(?:set_trace|mark\.(?:skip|only))|\bbreakpoint\(|\bpdb\b"
        exempt = {Path(__file__), ROOT / "tests" / "test_plugin.py"}
        found = [
            str(path.relative_to(ROOT))
            for path in sources("tests")
            if path not in exempt and re.search(marks, path.read_text())
        ]
        assert found == []

    def test_the_site_has_no_door_for_tests(self):
        found = [
            str(path.relative_to(ROOT))
            for package in PACKAGES
            for path in sources(package)
            if re.search(r"\bPYTEST\w*|\bTEST_DATABASE\b", path.read_text())
        ]
        assert found == []
