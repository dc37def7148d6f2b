"""It has no addresses."""

urlpatterns: list = []
