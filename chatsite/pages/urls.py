"""Pages, fragments and JSON of conversations."""

from django.urls import include, path, register_converter
from django.urls.converters import IntConverter

from . import desk_views, list_views, memory_actions, memory_views, views
from .list_actions import bulk


class NumberConverter(IntConverter):
    """The number of a message or a version, as far as there can be one."""

    regex = "[1-9][0-9]{0,8}"


register_converter(NumberConverter, "number")

proposal = [
    path("", memory_views.show_preview, name="memory-preview"),
    path("propose/", memory_views.request_proposal, name="memory-propose"),
    path("proposal/", memory_views.show_proposal, name="memory-proposal"),
]

version = [
    path("diff/", memory_views.show_diff, name="memory-diff"),
    path("edit/", memory_views.edit_summary, name="memory-edit"),
    path("rewrite/", memory_actions.rewrite_as_owner, name="memory-rewrite"),
    path("restore/", memory_actions.restore_as_owner, name="memory-restore"),
]

memory = [
    path(
        "messages/<number:seq>/<slug:name>/",
        memory_actions.change_message,
        name="memory-message",
    ),
    path("summarise/<number:seq>/", include(proposal)),
    path("summarise/stop/", memory_views.stop_compaction, name="memory-stop"),
    path("work/", memory_views.show_activity, name="memory-work"),
    path("work/<number:job>/end/", memory_views.end_job, name="memory-end-job"),
    path("summarise/accept/", memory_actions.accept_as_owner, name="memory-accept"),
    path("summaries/", memory_views.show_summaries, name="memory-summaries"),
    path("summaries/<number:version>/", include(version)),
    path("reinstate/", memory_actions.reinstate_as_owner, name="memory-reinstate"),
    path("system-prompt/", memory_views.edit_prompt, name="memory-system-prompt"),
    path(
        "system-prompt/set/",
        memory_actions.post_system_prompt,
        name="memory-set-system-prompt",
    ),
    path("policy/", memory_views.show_policy, name="memory-policy"),
    path("estimate/", memory_views.show_estimate, name="memory-estimate"),
    path("find/", memory_views.search_memory, name="memory-find"),
    path("draft/", memory_views.show_draft, name="memory-draft"),
    path("moment/", memory_views.show_snapshot, name="memory-moment"),
    path("desk/", desk_views.switch_part, name="memory-switch"),
    path("desk/keep/", desk_views.keep_switches, name="memory-switches-keep"),
    path("desk/undo/", desk_views.undo_switches, name="memory-switches-undo"),
    path("raw/", memory_views.show_raw, name="memory-raw"),
    path("rebuild/", memory_actions.rebuild_as_owner, name="memory-rebuild"),
]

conversation = [
    path("", views.show_conversation, name="conversation-detail"),
    path("menu/", list_views.show_menu, name="conversation-menu"),
    path("rename/", list_views.rename_in_list, name="conversation-rename"),
    path("pin/", list_views.pin, name="conversation-pin"),
    path("unpin/", list_views.unpin, name="conversation-unpin"),
    path("archive/", list_views.archive, name="conversation-archive"),
    path("unarchive/", list_views.unarchive, name="conversation-unarchive"),
    path("delete/", list_views.delete_in_list, name="conversation-delete"),
    path("undelete/", list_views.undelete_in_list, name="conversation-undelete"),
    path("branch/", list_views.begin_branch, name="conversation-branch"),
    path("model/", memory_actions.post_model, name="conversation-model"),
    path("policy/", memory_actions.post_policy, name="conversation-policy"),
    path("policy/undo/", memory_actions.undo_policy, name="conversation-policy-undo"),
    path("summarise/", memory_actions.retry_compaction, name="conversation-compact"),
    path("memory/", include(memory)),
    path("guide/", views.show_guide, name="conversation-guide"),
    path("messages/", views.show_more_turns, name="conversation-messages"),
    path(
        "messages/<number:seq>/menu/",
        views.show_message_menu,
        name="conversation-message-menu",
    ),
    path(
        "messages/<number:seq>/attachments/<int:place>/",
        views.attachment,
        name="conversation-attachment",
    ),
    path("context/", views.show_context, name="conversation-context"),
    path("transcript.json", views.transcript_json, name="conversation-transcript"),
    path("context.json", views.context_json, name="conversation-context-json"),
    path("summaries.json", views.summaries_json, name="conversation-summaries"),
]

several = [
    path("archive/", bulk.archive, name="several-archive"),
    path("unarchive/", bulk.unarchive, name="several-unarchive"),
    path("delete/", bulk.delete, name="several-delete"),
    path("undelete/", bulk.undelete, name="several-undelete"),
    path("keep-deleted/", bulk.keep_deleted, name="several-keep-deleted"),
]

urlpatterns = [
    path("", list_views.show_home, name="conversation-list"),
    path("demo/", list_views.begin_demo, name="conversation-demo"),
    path("several/", include(several)),
    path("c/", list_views.begin_conversation, name="conversation-create"),
    path("c/<uuid:uuid>/", include(conversation)),
]
