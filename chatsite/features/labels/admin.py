"""Labels in the list of conversations in the admin.

Their names belong to the user: staff can neither see nor find them.
"""

from typing import ClassVar

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from chatsite.review.filters import ChoiceFilter
from memory.models import Conversation

from .services import Link


class LabelFilter(ChoiceFilter):
    title = _("labels")
    parameter_name = "labelled"
    links = Link.objects.filter(conversation=OuterRef("pk"))
    conditions: ClassVar = {
        "yes": (_("with a label"), Q(Exists(links))),
        "no": (_("without"), ~Q(Exists(links))),
    }


listed = admin.site.get_model_admin(Conversation)
listed.list_filter = (*listed.list_filter, LabelFilter)
