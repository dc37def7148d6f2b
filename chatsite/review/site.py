"""Django's admin, whose lists stand in a few sections."""

from typing import Any

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _


class ReviewSite(AdminSite):
    site_header = site_title = "Windowpane"
    index_title = _("What people saw, what the model saw")

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the sections; an app's lists are in the one of its `admin_section`.

        They are there only if the user sees that section.
        """
        found = super().get_app_list(request, app_label)
        sections = {app["app_label"]: app for app in found}
        for app in found:
            config = apps.get_app_config(app["app_label"])
            if into := sections.get(getattr(config, "admin_section", "")):
                into["models"] += app["models"]
                del sections[app["app_label"]]
        return list(sections.values())


class ReviewAdminConfig(AdminConfig):
    default_site = "chatsite.review.site.ReviewSite"
