"""URLs of a user's examples, and of those below a conversation in the admin."""

from django.urls import include, path

from . import staff_views, views

examples = [
    path("", views.list_examples, name="examples"),
    path("export.jsonl", views.download_examples, name="examples-export"),
    path("answers/", views.post_answers, name="examples-answers"),
    path("answers/progress/", views.show_answers_progress, name="examples-progress"),
    path("answers/cancel/", views.cancel_answers, name="examples-cancel"),
    path("<number:pk>/", views.show_example_page, name="example"),
]
reply = [
    path("", views.post_example, name="conversation-example-post"),
    path("correction/", views.ask_correction, name="conversation-example"),
]

urlpatterns = [
    path("examples/", include(examples)),
    path("c/<uuid:uuid>/messages/<number:seq>/example/", include(reply)),
    path(
        "admin/memory/conversation/<int:pk>/example/<int:seq>/",
        staff_views.show_reply,
        name="review-example",
    ),
]
