"""What a person does to the model's view of one conversation."""

from django.urls import path, register_converter
from django.urls.converters import IntConverter

from . import activity_views
from . import memory_actions as acts
from . import memory_views as views


class NumberConverter(IntConverter):
    """The number of a message or a version, as far as there can be one."""

    regex = "[1-9][0-9]{0,8}"


register_converter(NumberConverter, "number")

urlpatterns = [
    path("messages/<number:seq>/<slug:name>/", acts.message, name="memory-message"),
    path("summarise/<number:seq>/", views.preview, name="memory-preview"),
    path("summarise/<number:seq>/propose/", views.propose, name="memory-propose"),
    path("summarise/<number:seq>/proposal/", views.proposal, name="memory-proposal"),
    path("summarise/stop/", activity_views.stop, name="memory-stop"),
    path("work/", activity_views.show, name="memory-work"),
    path("work/<number:job>/end/", activity_views.end, name="memory-end-job"),
    path("summarise/accept/", acts.accept, name="memory-accept"),
    path("summaries/", views.summaries, name="memory-summaries"),
    path("summaries/<number:version>/diff/", views.diff, name="memory-diff"),
    path("summaries/<number:version>/edit/", views.edit, name="memory-edit"),
    path("summaries/<number:version>/rewrite/", acts.rewrite, name="memory-rewrite"),
    path("summaries/<number:version>/restore/", acts.restore, name="memory-restore"),
    path("reinstate/", acts.reinstate, name="memory-reinstate"),
    path("estimate/", views.estimate, name="memory-estimate"),
    path("find/", views.find, name="memory-find"),
    path("savings/", views.saved, name="memory-savings"),
    path("draft/", views.draft, name="memory-draft"),
    path("moment/", views.moment, name="memory-moment"),
    path("raw/", views.raw, name="memory-raw"),
    path("rebuild/", acts.rebuild, name="memory-rebuild"),
]
