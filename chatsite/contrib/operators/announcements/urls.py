"""It has no pages but its list in the admin."""

urlpatterns: list[object] = []
