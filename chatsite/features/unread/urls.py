"""The URLs of news: none, as each page comes with its unread news."""

urlpatterns: list[object] = []
