"""The page that takes conversations in from a file, and shows what becomes of it."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from . import importing, jobs
from .access import private
from .forms import ImportForm


@require_http_methods(["GET", "POST"])
@private
def take_in(request: HttpRequest) -> HttpResponse:
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form = ImportForm(*sent)
    if sent and form.is_valid():
        try:
            importing.add(request.user, form.cleaned_data["file"])
            return redirect("import")
        except importing.ImportFileError as error:
            form.add_error("file", str(error))
        except jobs.JobBusyError:
            form.add_error(
                "file",
                _(
                    "Another import of yours is under way, so this file was not taken. "
                    "Wait for its end, then choose the file again."
                ),
            )
    values = {"form": form, **_shown(request)}
    status = 422 if form.errors else 200
    return render(request, "chat/import.html", values, status=status)


@require_GET
@private
def progress(request: HttpRequest) -> HttpResponse:
    return render(request, "chat/_import.html", _shown(request))


def _shown(request: HttpRequest) -> dict[str, object]:
    job = jobs.latest(importing.KIND, request.user)
    return {"job": job, "outcome": importing.Outcome.of(job) if job else None}
