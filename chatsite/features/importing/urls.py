"""The addresses of imports and exports."""

from django.urls import include, path

from . import views

imports = [
    path("", views.import_file, name="import"),
    path("progress/", views.show_import_progress, name="import-progress"),
]
conversation = [
    path("export.json", views.download_json, name="conversation-export-json"),
    path("export.md", views.download_markdown, name="conversation-export-md"),
]

urlpatterns = [
    path("import/", include(imports)),
    path("c/<uuid:uuid>/", include(conversation)),
    path("account/export.json", views.download_account, name="account-export"),
    path(
        "admin/memory/conversation/<int:pk>/export/",
        views.export_for_staff,
        name="staff-export",
    ),
]
