"""Logging out one device."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from chatsite.accounts.access import private_page

from . import services


@private_page("POST")
def log_out_device(request: HttpRequest, pk: int) -> HttpResponse:
    if services.log_out(request.user, pk):
        messages.success(request, _("Logged out there."))
    else:
        messages.success(request, _("That device was logged out already."))
    return redirect("account")
