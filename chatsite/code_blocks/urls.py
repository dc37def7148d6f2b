"""It has no addresses: what it shows is made in the browser."""

urlpatterns: list[object] = []
