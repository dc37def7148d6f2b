"""The app of quizzes, and what it adds to shared links."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class QuizConfig(AppConfig):
    name = "chatsite.contrib.quiz"
    verbose_name = _("Quizzes")

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import parts, services

        plugins.register_field("share", services.FIELD, parts.make_quiz_field)
        slots.register("share.facts", parts.draw_quiz_fact)
        slots.register("shared.instead", parts.draw_question)
        slots.register("shared.reply", parts.draw_counts)
        plugins.register_data(name="quizzes", list_own=services.describe_quizzes)
