"""It has no addresses: all is made in the browser."""

urlpatterns: list = []
