"""Mails of the site: written in the request, sent by a thread of their own.

So the page says the same in the same time whether there is an account or not, and a
mail server that does not answer holds no place of a request. A process that ends sends
no more of what waits: people ask for another link.
"""

import logging
import smtplib
from queue import Full, Queue
from threading import Lock, Thread

from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from prometheus_client import Counter

from memory.database import name_of

logger = logging.getLogger(__name__)

MOST_WAITING = 200
MAILS = Counter("windowpane_mails", "Mails of the site.", ["outcome"])
waiting: Queue[EmailMessage] = Queue(MOST_WAITING)
_starting = Lock()
_threads: list[Thread] = []


def send_soon(recipient: str, subject: str, template: str, values: object) -> None:
    """Queue a mail in the language of the request."""
    body = render_to_string(template, values)
    _start_thread()
    try:
        waiting.put_nowait(EmailMessage(subject, body.strip() + "\n", to=[recipient]))
    except Full:
        MAILS.labels("dropped").inc()
        logger.warning("mail dropped: %s wait already", MOST_WAITING)


def _start_thread() -> None:
    with _starting:
        if not any(thread.is_alive() for thread in _threads):
            _threads[:] = [Thread(target=_send_all, name="mail", daemon=True)]
            _threads[0].start()


def _send_all() -> None:
    while True:
        _send_one(waiting.get())
        waiting.task_done()


def _send_one(mail: EmailMessage) -> None:
    try:
        mail.send()
    except (OSError, smtplib.SMTPException, ValueError) as error:
        # Without the server's words: they name the user.
        MAILS.labels("failed").inc()
        logger.warning("mail not sent: %s", name_of(error))
    else:
        MAILS.labels("sent").inc()
