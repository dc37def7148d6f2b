"""It has no addresses of its own: what was not looked at comes with each page."""

urlpatterns: list[object] = []
