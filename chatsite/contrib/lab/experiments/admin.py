"""Admin of experiments over samples: the list, a new one, its progress and table.

Numbers are shown to all who may see numbers; starting one requires the right to
read, as texts of the conversations are sent to models.
"""

import json
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from chatsite.llm import pricing
from chatsite.review import access_log
from chatsite.review.pages import render_admin
from chatsite.review.readonly import ReadOnlyAdmin
from chatsite.review.rights import rights_of

from .models import Sample
from .samples import drawing, results, services
from .samples.forms import SampleForm, TriedPolicies
from .store import EXPERIMENTS

FILTERS = ("least", "preset", "model", "days")


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    list_display = (
        "shown_name",
        "conversations",
        "policies_shown",
        "user",
        "created_at",
    )
    list_select_related = ("user",)
    ordering = ("-pk",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rights_of(request.user).content

    @admin.display(description=_("experiment over a sample"), ordering="pk")
    def shown_name(self, row: Sample) -> str:
        return gettext("Sample %(number)s") % {"number": row.pk}

    @admin.display(description=_("policies"))
    def policies_shown(self, row: Sample) -> str:
        return " · ".join(results.name_columns(row))

    def get_urls(self) -> list[URLPattern]:
        view, name = self.admin_site.admin_view, "experiments_sample_{}".format
        parts = {
            "progress": self.show_progress,
            "cancel": require_POST(self.cancel_replays),
            "csv": self.download_results,
        }
        own = [
            path(f"<int:object_id>/{part}/", view(shown), name=name(part))
            for part, shown in parts.items()
        ]
        return [*own, *super().get_urls()]

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Draw and estimate first; start if the form returns with the estimate."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = SampleForm(request.POST or None)
        policies = TriedPolicies(request.POST or None)
        values: dict[str, Any] = {"form": form, "policies": policies}
        if request.method == "POST" and form.is_valid() and policies.is_valid():
            asked = _SampleRequest(request, form, policies)
            if sample := asked.start():
                return redirect("admin:experiments_sample_change", sample.pk)
            values |= asked.estimate()
        title = gettext("Try policies with a sample")
        template = "experiments/new_sample.html"
        return render_admin(request, template, Sample, title, **values)

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        sample = self._find(request, object_id)
        rights = rights_of(request.user)
        rows = results.read_rows(sample)
        groups = results.group_whole(rows, drawing.REPLAYS + len(sample.policies))
        texts = []
        if rights.content:
            action = access_log.StaffAction.VIEW
            access_log.record_access(request, action, None, f"sample {sample.pk}")
            texts = [json.dumps(each, ensure_ascii=False) for each in sample.policies]
        return render_admin(
            request,
            "experiments/sample.html",
            Sample,
            self.shown_name(sample),
            sample=sample,
            rights=rights,
            progress=services.count_played(sample),
            draw=results.describe_draw(sample),
            columns=results.name_columns(sample),
            lines=results.compare_policies(groups, len(sample.policies)),
            compared=len(groups),
            played=results.list_replays(rows),
            texts=texts,
        )

    def _find(self, request: HttpRequest, object_id: object) -> Sample:
        if not self.has_view_permission(request):
            raise PermissionDenied
        sample = self.get_object(request, str(object_id))
        if sample is None:
            raise Http404
        return sample

    def show_progress(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Return the bar alone, or reload the page once everything has ended."""
        sample = self._find(request, object_id)
        progress = services.count_played(sample)
        if not progress["going"]:
            return HttpResponseClientRefresh()
        rights = rights_of(request.user)
        values = {"sample": sample, "progress": progress, "rights": rights}
        return TemplateResponse(request, "experiments/_sample_progress.html", values)

    def cancel_replays(self, request: HttpRequest, object_id: int) -> HttpResponse:
        sample = self._find(request, object_id)
        if not rights_of(request.user).content:
            raise PermissionDenied
        EXPERIMENTS.cancel_rows(sample.experiments.all())
        access_log.record_access(request, "try", None, f"sample {object_id} cancelled")
        messages.info(request, gettext("It will stop as soon as it can."))
        return redirect("admin:experiments_sample_change", object_id)

    def download_results(self, request: HttpRequest, object_id: int) -> HttpResponse:
        sample = self._find(request, object_id)
        if not rights_of(request.user).export:
            raise PermissionDenied
        access_log.record_access(
            request, access_log.StaffAction.CSV, None, f"csv sample {object_id}"
        )
        lines = results.write_replays(sample, results.read_rows(sample))
        answer = HttpResponse("\ufeff" + "".join(lines), "text/csv; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="sample-{object_id}.csv"'
        return answer


class _SampleRequest:
    """A valid form, with the conversations that it draws and what they cost."""

    def __init__(self, request: HttpRequest, form: SampleForm, policies: Any) -> None:
        self.request, self.form = request, form
        self.policies = policies.list_policies()
        self.size = {name: form.cleaned_data[name] for name in ("number", "seed")}
        self.filters = {name: form.cleaned_data[name] for name in FILTERS}
        self.drawn = drawing.draw_conversations(**self.size, **self.filters)
        self.tokens = drawing.sum_budgets(self.drawn, len(self.policies))

    def start(self) -> Sample | None:
        """Return the started sample; None if the cost is not agreed to or refused."""
        user_id = self.request.user.pk
        if refusal := services.find_sample_refusal(user_id, self.drawn):
            self.form.add_error(None, refusal)
            return None
        if self.form.cleaned_data["agreed"] != self.tokens:
            return None
        sample = services.start_sample(
            user_id,
            self.drawn,
            self.policies,
            seed=self.size["seed"],
            drawn_from=self.filters,
        )
        chosen = [each.conversation for each in self.drawn]
        access_log.record_list(self.request, chosen, f"list sample {sample.pk}", "try")
        return sample

    def estimate(self) -> dict[str, Any]:
        if self.form.errors:
            return {}
        times = drawing.REPLAYS + len(self.policies)
        price = times * sum(each.price for each in self.drawn)
        return {
            "estimate": {
                "conversations": len(self.drawn),
                "messages": sum(each.messages for each in self.drawn),
                "transcript": sum(each.tokens for each in self.drawn),
                "times": times,
                "tokens": self.tokens,
                "price": pricing.format_dollars(price) if price else "",
            }
        }
