"""The URLs of the review queue: none, as the admin has its only page."""

urlpatterns: list[object] = []
