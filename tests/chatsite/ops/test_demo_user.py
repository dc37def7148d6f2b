"""The user demo: ready where the site is tried, harmless where it is run."""

import pytest
from django.contrib.auth import get_user_model

from chatsite.ops import demo_user
from chatsite.review.rights import rights_of

pytestmark = pytest.mark.django_db


def demo():
    return get_user_model().objects.get(username="demo")


def test_demo_user_may_review_on_a_local_machine(settings):
    settings.DEBUG = True
    demo_user.prepare_demo_user("127.0.0.1")
    rights = rights_of(demo())
    assert (rights.content, rights.export, rights.purge) == (True, False, False)
    assert demo().check_password("demo")
    assert not demo().is_superuser


@pytest.mark.parametrize(
    ("debug", "host"),
    [(True, "0.0.0.0"), (True, "192.168.1.5"), (True, ""), (False, "127.0.0.1")],  # noqa: S104
)
def test_elsewhere_one_that_was_made_here_may_not_any_more(settings, debug, host):
    settings.DEBUG = True
    demo_user.prepare_demo_user("localhost")
    settings.DEBUG = debug
    demo_user.prepare_demo_user(host)
    assert not rights_of(demo()).metadata


def test_demo_user_is_missing_without_debug(settings):
    settings.DEBUG = False
    demo_user.prepare_demo_user("127.0.0.1")
    assert not get_user_model().objects.exists()


def test_a_person_of_that_name_is_left_alone(settings):
    person = get_user_model().objects.create_user("demo", password="a secret of mine")
    settings.DEBUG = True
    demo_user.prepare_demo_user("127.0.0.1")
    assert not demo().is_staff
    person.is_staff = True
    person.save()
    demo_user.prepare_demo_user("0.0.0.0")  # noqa: S104
    assert demo().is_staff
