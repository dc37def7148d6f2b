"""Names of tables and columns in the administration, in the reader's language.

Named here and not on the models: no migration has to know a translation.
"""

from django.apps import apps
from django.db.models import Model
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _

# Those that a list or a page shows.
COLUMNS = (
    *(_("allowed"), _("answered at"), _("answered by"), _("archived at")),
    *(_("attempt"), _("attempts"), _("conversation")),
    *(_("created at"), _("deadline at"), _("deleted at"), _("error")),
    *(_("expires at"), _("finished at"), _("first token ms"), _("generation")),
    *(_("imported at"), _("kind"), _("lease until")),
    *(_("level"), _("model"), _("ms")),
    *(_("owner"), _("pinned at")),
    *(_("preset"), _("purpose"), _("role")),
    *(_("sha256"), _("signature"), _("started at"), _("state"), _("temperature")),
    *(_("tokens"), _("tokens after")),
    *(_("tokens before"), _("tokens cached"), _("tokens estimated")),
    *(_("tokens in"), _("tokens input"), _("tokens out"), _("tokens output")),
    *(_("total ms"), _("updated at"), _("user"), _("uuid"), _("version")),
)
# Names of columns that are no words of the pages, and what is said instead.
SAID = {
    "seq": _("message number"),
    "reply seq": _("number of the reply"),
    "excluded at": _("hidden at"),
    "superseded at": _("replaced at"),
    "compaction failures": _("failed summaries"),
    "compaction retry at": _("next try at"),
}
TABLES = {
    "memory.Conversation": (_("conversation"), _("conversations")),
    "memory.Message": (_("message"), _("messages")),
    "memory.Summary": (_("summary"), _("summaries")),
    "memory.Prompt": (_("prompt"), _("prompts")),
    "memory.ModelCall": (_("model call"), _("model calls")),
    "chat.Turn": (_("turn"), _("turns")),
    "chat.Job": (_("job"), _("jobs")),
    "chat.Allowance": (_("usage and limits"), _("usage and limits")),
    "desk.Tombstone": (_("deletion record"), _("deletion records")),
    "axes.AccessAttempt": (_("failed log-in"), _("failed log-ins")),
}
# Django and django-axes mark these themselves, without a translation to Chinese.
OTHERS = (
    *(_("Attempt Time"), _("Failed Logins"), _("Locked Out"), _("Path")),
    *(_("Username"), _("IP Address")),
    *(_("Model name"), _("Add link"), _("Change or view list link")),
    # Behind the labels of fields; in Chinese it is another sign.
    _(":"),
)


def apply_names() -> None:
    log_ins = apps.get_app_config("axes")
    log_ins.verbose_name, log_ins.admin_section = gettext_lazy("Log-ins"), "auth"
    for label, (one, several) in TABLES.items():
        name_table(apps.get_model(label), one, several)


def name_table(model: type[Model], one: str, several: str) -> None:
    """Set the names of a table, and of its columns that are known here, for staff."""
    model._meta.verbose_name = gettext_lazy(one)
    model._meta.verbose_name_plural = gettext_lazy(several)
    for field in model._meta.local_fields:
        name = field.verbose_name
        if name in SAID or name in COLUMNS:
            field.verbose_name = gettext_lazy(SAID.get(name, name))
