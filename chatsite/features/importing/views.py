"""The page that takes a file, and the files that users and staff download."""

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.accounts.access import conversation_view, private_page
from chatsite.jobs import queue
from chatsite.pages.views import respond_with_file, respond_with_json
from chatsite.review.actions.views import post_action
from chatsite.review.rights import Rights
from memory.actions import ActionError
from memory.models import Conversation

from . import worker
from .exporting import for_staff
from .exporting.account import export_account
from .exporting.as_markdown import write_markdown
from .exporting.thread import export_thread
from .files.reading import ArchiveReader, ImportFileError
from .forms import ImportForm, MemoriesForm
from .outcome import KIND, Outcome


@private_page("GET", "POST")
def import_file(request: HttpRequest) -> HttpResponse:
    is_pasted = "memories" in request.POST
    is_file = request.method == "POST" and not is_pasted
    pasted = MemoriesForm(request.POST if is_pasted else None)
    form = ImportForm(*((request.POST, request.FILES) if is_file else ()))
    sent, field = (pasted, "memories") if is_pasted else (form, "file")
    if sent.is_valid():
        try:
            worker.keep_upload(request.user, sent.get_file())
            return redirect("import")
        except ImportFileError as error:
            sent.add_error(field, str(error))
        except queue.JobBusyError:
            words = _(
                "Another import of yours is still running, so this file was not "
                "imported. Wait until it has finished, then choose the file again."
            )
            sent.add_error(field, words)
    values = {"form": form, "pasted": pasted, "opens_again": True}
    values |= _describe_page(request)
    status = 422 if sent.errors else 200
    return render(request, "importing/import.html", values, status=status)


@private_page("GET")
def show_import_progress(request: HttpRequest) -> HttpResponse:
    values = {"form": ImportForm(), "pasted": MemoriesForm(), **_describe_page(request)}
    return render(request, "importing/_progress.html", values)


def _describe_page(request: HttpRequest) -> dict[str, object]:
    """Return what the site imports, and the user's latest import with its outcome."""
    job = queue.latest(KIND, request.user)
    return {
        "job": job,
        "outcome": Outcome.from_job(job) if job else None,
        "has_archives": bool(plugins.sources[ArchiveReader]),
    }


@conversation_view("GET")
def download_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    whole = respond_with_json(export_thread(conversation))
    return respond_with_file(whole, conversation, "json")


@conversation_view("GET")
def download_markdown(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    text = write_markdown(conversation)
    response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    return respond_with_file(response, conversation, "md")


@private_page("GET")
def download_account(request: HttpRequest) -> HttpResponse:
    answer = StreamingHttpResponse(
        export_account(request.user), content_type="application/json"
    )
    name = f"windowpane-{timezone.localdate():%Y-%m-%d}.json"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


@post_action("export")
def export_for_staff(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponseBase:
    form = request.POST.get("format", "")
    if form not in for_staff.WRITERS:
        raise ActionError(_("Choose a format: JSON or Markdown."))
    return for_staff.send_one(request, conversation, rights, form)
