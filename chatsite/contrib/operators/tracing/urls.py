"""It has no pages."""

urlpatterns: list[object] = []
