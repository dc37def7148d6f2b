"""The URLs of retention: none, as the admin has its only page."""

urlpatterns: list[object] = []
