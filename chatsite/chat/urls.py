"""Pages, fragments and JSON of conversations."""

from django.urls import include, path

from . import views

conversation = [
    path("", views.detail, name="conversation-detail"),
    path("rename/", views.rename, name="conversation-rename"),
    path("delete/", views.delete, name="conversation-delete"),
    path("policy/", views.set_policy, name="conversation-policy"),
    path("fold/", views.fold, name="conversation-fold"),
    path("messages/", views.messages, name="conversation-messages"),
    path("context/", views.context, name="conversation-context"),
    path("transcript.json", views.transcript_json, name="conversation-transcript"),
    path("context.json", views.context_json, name="conversation-context-json"),
    path("summaries.json", views.summaries_json, name="conversation-summaries"),
    path("export.json", views.export_json, name="conversation-export-json"),
    path("export.md", views.export_md, name="conversation-export-md"),
]

urlpatterns = [
    path("", views.index, name="conversation-list"),
    path("demo/", views.demo, name="conversation-demo"),
    path("c/", views.create, name="conversation-create"),
    path("c/<uuid:uuid>/", include(conversation)),
]
