"""Pages, fragments and JSON of conversations."""

from django.urls import include, path

from . import copy_views, list_views, policy_views, views

conversation = [
    path("", views.detail, name="conversation-detail"),
    path("menu/", list_views.menu, name="conversation-menu"),
    path("rename/", list_views.rename, name="conversation-rename"),
    path("pin/", list_views.pin, name="conversation-pin"),
    path("unpin/", list_views.unpin, name="conversation-unpin"),
    path("archive/", list_views.archive, name="conversation-archive"),
    path("unarchive/", list_views.unarchive, name="conversation-unarchive"),
    path("delete/", list_views.delete, name="conversation-delete"),
    path("undelete/", list_views.undelete, name="conversation-undelete"),
    path("branch/", copy_views.branch, name="conversation-branch"),
    path("policy/", policy_views.set_policy, name="conversation-policy"),
    path("policy/undo/", policy_views.undo_policy, name="conversation-policy-undo"),
    path("summarise/", views.compact, name="conversation-compact"),
    path("memory/", include("chatsite.pages.memory_urls")),
    path("messages/", views.messages, name="conversation-messages"),
    path("context/", views.context, name="conversation-context"),
    path("transcript.json", views.transcript_json, name="conversation-transcript"),
    path("context.json", views.context_json, name="conversation-context-json"),
    path("summaries.json", views.summaries_json, name="conversation-summaries"),
    path("export.json", views.export_json, name="conversation-export-json"),
    path("export.md", views.export_md, name="conversation-export-md"),
]

urlpatterns = [
    path("", list_views.index, name="conversation-list"),
    path("demo/", views.demo, name="conversation-demo"),
    path("c/", views.create, name="conversation-create"),
    path("c/<uuid:uuid>/", include(conversation)),
]
