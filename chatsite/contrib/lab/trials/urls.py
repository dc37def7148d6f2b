"""The addresses of trials."""

from django.urls import include, path

from . import views

reply = [
    path("", views.show_trials, name="trials"),
    path("start/", views.post_trial, name="trials-start"),
    path("ask/", views.post_ask, name="trials-ask"),
]
trial = [
    path("stop/", views.post_stop, name="trial-stop"),
    path("next/", views.post_next, name="trial-next"),
    path("reply/", views.post_reply, name="trial-reply"),
]
conversation = [
    path("messages/<number:seq>/trials/", include(reply)),
    path("messages/<number:seq>/trials.json", views.trials_json, name="trials-json"),
    path("trials/words/", views.show_words, name="trial-words"),
    path("trials/next/forget/", views.forget_next, name="trial-next-forget"),
    path("trials/<number:trial>/", include(trial)),
]

urlpatterns = [path("c/<uuid:uuid>/", include(conversation))]
