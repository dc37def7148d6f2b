"""It has no pages but its lists in the admin."""

urlpatterns: list[object] = []
