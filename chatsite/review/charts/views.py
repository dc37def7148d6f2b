"""The page of figures of one conversation: numbers, no word of it."""

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chatsite.pages.presenters import savings
from memory.models import Conversation

from ..pages import desk_view, render
from ..rights import Rights
from . import conversation as figures


@require_GET
@desk_view()
def show_figures(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse:
    return render(
        request,
        "admin/desk/figures.html",
        conversation,
        _("Figures"),
        chart=figures.draw(conversation),
        savings=savings.of(conversation),
    )


urlpatterns = [path("<int:pk>/figures/", show_figures, name="desk-figures")]
