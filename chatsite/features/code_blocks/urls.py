"""The URLs of code blocks: none, as everything happens in the browser."""

urlpatterns: list = []
