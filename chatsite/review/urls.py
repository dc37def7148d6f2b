"""The desk's own addresses, below admin/memory/conversation/<pk>/."""

from django.urls import URLPattern

from .actions import urls as acts
from .charts import views as charts
from .experiments import views as experiments
from .timeline import urls as timeline

urlpatterns: list[URLPattern] = [
    *timeline.urlpatterns,
    *charts.urlpatterns,
    *experiments.urlpatterns,
    *acts.urlpatterns,
]
