"""The page that takes conversations in from a file."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from . import importing
from .access import private
from .forms import ImportForm


@require_http_methods(["GET", "POST"])
@private
def take_in(request: HttpRequest) -> HttpResponse:
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form, outcome = ImportForm(*sent), None
    if sent and form.is_valid():
        try:
            outcome = importing.run(request.user, form.cleaned_data["file"])
        except importing.ImportFileError as error:
            form.add_error("file", str(error))
    values = {"form": form, "outcome": outcome}
    status = 422 if form.errors or _is_failure(outcome) else 200
    return render(request, "chat/import.html", values, status=status)


def _is_failure(outcome: importing.Outcome | None) -> bool:
    return bool(outcome and outcome.refused and not outcome.imported)
