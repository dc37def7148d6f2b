"""The app of people's accounts."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "chatsite.accounts"

    def ready(self) -> None:
        from django.contrib.auth import get_user_model
        from django.contrib.auth.models import Group
        from django.db.models.signals import post_migrate, post_save, pre_delete

        from . import account, names

        post_save.connect(names.keep_name_keys, sender=get_user_model())
        post_migrate.connect(names.make_all_keys, sender=self)
        for model in (get_user_model(), Group):
            pre_delete.connect(account.forget_left_rows, sender=model)
