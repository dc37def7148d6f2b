"""The app of people's accounts."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "chatsite.accounts"

    def ready(self) -> None:
        from django.contrib.auth import get_user_model
        from django.db.models.signals import post_save

        from . import names

        post_save.connect(names.keep_name_keys, sender=get_user_model())
