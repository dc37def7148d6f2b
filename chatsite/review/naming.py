"""What tables and columns are called in the administration, in the reader's language.

Named here and not on the models: no migration has to know a translation.
"""

from django.apps import apps
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _

COLUMNS = (
    *(_("allowed"), _("answered at"), _("answered by"), _("deadline at"), _("digest")),
    *(_("expires at"), _("next look at"), _("place")),
    *(_("archived at"), _("attempt"), _("attempts"), _("author"), _("branched from")),
    *(_("branched seq"), _("cancel requested at"), _("client id"), _("conversation")),
    *(_("created at"), _("day"), _("deleted at"), _("error")),
    *(_("finished at"), _("first token ms"), _("flags")),
    *(
        _("compaction lease until"),
        _("compaction owner"),
    ),
    *(_("generation"), _("imported at"), _("imported from")),
    *(
        _("kind"),
        _("lease until"),
        _("level"),
        _("memory version"),
        _("message"),
    ),
    *(_("model"), _("ms"), _("owner"), _("pinned at"), _("policy")),
    *(_("policy hash"), _("preset"), _("prompt hash"), _("purpose"), _("refs")),
    *(_("reply"), _("role"), _("set aside"), _("signature")),
    *(_("sha256"), _("started at"), _("state"), _("status"), _("status signature")),
    *(_("structured"), _("summary"), _("system prompt")),
    *(_("text"), _("text attempt"), _("title"), _("title set by")),
    _("token overhead"),
    *(_("tokens"), _("tokens after"), _("tokens before"), _("tokens cached")),
    *(_("tokens estimated"), _("tokens in"), _("tokens input"), _("tokens out")),
    *(
        _("temperature"),
        _("tokens output"),
        _("tokens used"),
        _("tool call id"),
        _("tool calls"),
    ),
    *(_("last opened at"), _("opens"), _("revoked at")),
    *(_("total ms"), _("trigger"), _("trigger kind"), _("unsupported")),
    *(_("attachments"), _("name"), _("size")),
    *(_("updated at"), _("user"), _("user message"), _("uuid"), _("version")),
)
# Names of columns that are no words of the pages, and what is said instead.
SAID = {
    "seq": _("message number"),
    "next seq": _("next number"),
    "reply seq": _("number of the reply"),
    "first seq": _("first message"),
    "last seq": _("last message"),
    "excluded at": _("hidden at"),
    "superseded at": _("replaced at"),
    "compaction due at": _("summary due at"),
    "compaction failures": _("failed summaries"),
    "compaction retry at": _("next try at"),
    "with view": _("with what the model saw"),
    "token ratio": _("correction of estimates"),
}
TABLES = {
    "memory.Conversation": (_("conversation"), _("conversations")),
    "memory.Message": (_("message"), _("messages")),
    "memory.Rule": (_("rule"), _("rules")),
    "memory.Upload": (_("upload"), _("uploads")),
    "memory.Summary": (_("summary"), _("summaries")),
    "memory.Prompt": (_("prompt"), _("prompts")),
    "memory.ModelCall": (_("model call"), _("model calls")),
    "chat.Turn": (_("turn"), _("turns")),
    "chat.ToolCall": (_("tool call"), _("tool calls")),
    "chat.Job": (_("job"), _("jobs")),
    "chat.Share": (_("share link"), _("share links")),
    "chat.Allowance": (_("usage and limits"), _("usage and limits")),
    "desk.Tombstone": (_("deletion record"), _("deletion records")),
}
# Django and django-axes mark these themselves, without a translation to Chinese.
OTHERS = (
    *(_("access attempt"), _("access attempts"), _("access failure")),
    *(_("access failures"), _("access log"), _("access logs"), _("Access lock out")),
    *(_("Attempt Time"), _("Locked Out"), _("Logout Time"), _("Path")),
    *(_("Model name"), _("Add link"), _("Change or view list link")),
    # Behind the labels of fields; in Chinese it is another sign.
    _(":"),
)


def apply() -> None:
    apps.get_app_config("axes").verbose_name = gettext_lazy("Log-ins")
    for label, (one, several) in TABLES.items():
        model = apps.get_model(label)
        model._meta.verbose_name = gettext_lazy(one)
        model._meta.verbose_name_plural = gettext_lazy(several)
        for field in model._meta.local_fields:
            name = field.verbose_name
            if name in SAID or name in COLUMNS:
                field.verbose_name = gettext_lazy(SAID.get(name, name))
