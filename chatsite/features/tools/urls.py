"""The addresses of tools."""

from django.urls import include, path

from . import views

message = [
    path("result/", views.show_result, name="conversation-result"),
    path("files/<int:place>/", views.show_file, name="conversation-result-file"),
    path("arguments/<int:place>/", views.show_arguments, name="conversation-arguments"),
]

conversation = [
    path("memory/tools/", views.choose_tools, name="memory-tools"),
    path("memory/tools/set/", views.set_tools, name="memory-set-tools"),
    path("calls/<number:call>/answer/", views.answer_call, name="call-answer"),
    path("calls/<number:call>/cancel/", views.cancel_call, name="call-cancel"),
    path("messages/<number:seq>/", include(message)),
]

urlpatterns = [path("c/<uuid:uuid>/", include(conversation))]
