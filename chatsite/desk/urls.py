"""The desk's own addresses, below admin/memory/conversation/<pk>/."""

from django.urls import URLPattern

from .acts import urls as acts
from .charts import views as charts
from .timeline import urls as timeline
from .trials import views as trials

urlpatterns: list[URLPattern] = [
    *timeline.urlpatterns,
    *charts.urlpatterns,
    *trials.urlpatterns,
    *acts.urlpatterns,
]
