"""Monthly budgets: what is counted, what is refused, what people and staff see."""

import csv
import io
from datetime import date

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.urls import reverse
from prometheus_client import REGISTRY

from chatsite.contrib.operators.budgets import admin as budgets_admin
from chatsite.contrib.operators.budgets import services
from chatsite.contrib.operators.budgets.models import Budget, MonthlyUse
from chatsite.protocol.errors import CommandError
from chatsite.turns import limits, runner, spending
from chatsite.turns.limits import ModelUse
from chatsite.turns.models import Turn
from memory.compaction.compactor import RefusedError
from memory.models import Message

from ....scenes import page_of, signed_in, submit
from ....sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def prices(settings):
    settings.PRICE_INPUT, settings.PRICE_OUTPUT = 10.0, 100.0
    services.known.forget()
    yield
    services.known.forget()


@pytest.fixture
def group(alice, bob):
    made = Group.objects.create(name="Research")
    made.user_set.add(alice, bob)
    return made


def use(user, read=0, written=0, cached=0, model="gpt-9"):
    limits.charge_use(user.pk, ModelUse(model, read, written, cached))


def give(amount, unit="tokens", **whom):
    return Budget.objects.create(amount=amount, unit=unit, **whom)


class TestUse:
    def test_usage_is_counted_by_month_and_model(self, alice):
        use(alice, 100, 20, 50)
        use(alice, 10, 2)
        use(alice, 5, model="other")
        rows = MonthlyUse.objects.filter(month=date.today().replace(day=1))
        names = ("model", "requests", "read", "cached", "written")
        assert list(rows.order_by("model").values_list(*names)) == [
            ("gpt-9", 2, 110, 50, 22),
            ("other", 1, 5, 0, 0),
        ]

    def test_a_reply_is_counted_where_it_is_charged(self, conversation, alice):
        rows = MonthlyUse.objects.filter(user=alice, model="demo")
        assert list(rows.values_list("requests", "read", "written")) == [(2, 80, 14)]

    def test_deleting_a_conversation_restores_no_usage(self, conversation, alice):
        conversation.delete()
        assert MonthlyUse.objects.get(user=alice).requests == 2

    def test_usage_is_deleted_with_the_account(self, alice):
        use(alice, 5)
        assert services.list_use(alice)[0]["read"] == 5
        alice.delete()
        assert not MonthlyUse.objects.exists()


class TestBudgets:
    def test_budget_belongs_to_a_user_or_a_group(self, alice, group):
        for whom in ({}, {"user": alice, "group": group}):
            with pytest.raises(ValidationError) as refused:
                Budget(amount=1, **whom).full_clean()
            assert refused.value.messages == ["Choose a user or a group."]
            with pytest.raises(IntegrityError), transaction.atomic():
                give(1, **whom)

    @pytest.mark.parametrize(("unit", "amount"), [("tokens", 1_000), ("dollars", 1)])
    def test_budget_refuses_when_it_is_used_up(self, alice, unit, amount):
        give(amount, unit, user=alice)
        use(alice, 900 if unit == "tokens" else 90_000)
        limits.admit_spending(alice.pk)
        use(alice, 100 if unit == "tokens" else 10_000)
        with pytest.raises(CommandError) as caught:
            limits.admit_spending(alice.pk)
        assert caught.value.code == "quota"
        assert "(100 %)" in caught.value.detail
        assert "The limit is renewed on" in caught.value.detail
        assert 0 < caught.value.retry_after <= 86_400

    def test_a_group_spends_together(self, alice, bob, staff, group):
        give(100, group=group)
        use(alice, 60)
        use(bob, 40)
        use(staff, 1_000)
        for user in (alice, bob):
            with pytest.raises(CommandError, match="Your group Research has used 100"):
                limits.admit_turn(user.pk)
        limits.admit_turn(staff.pk)

    def test_a_new_month_is_a_new_budget(self, alice):
        give(100, user=alice)
        use(alice, 100)
        with pytest.raises(CommandError):
            limits.admit_spending(alice.pk)
        MonthlyUse.objects.update(month=date(2026, 1, 1))
        limits.admit_spending(alice.pk)

    def test_budget_of_zero_refuses_everything(self, alice):
        give(0, user=alice)
        with pytest.raises(CommandError):
            limits.admit_spending(alice.pk)

    def test_a_site_without_any_asks_once_in_a_while(
        self, alice, django_assert_num_queries
    ):
        services.check_budgets(alice.pk)
        with django_assert_num_queries(0):
            services.check_budgets(alice.pk)
        give(0, user=alice)
        with pytest.raises(CommandError):
            services.check_budgets(alice.pk)

    def test_many_budgets_take_as_many_statements_as_one(
        self, alice, bob, group, django_assert_num_queries
    ):
        for whom in ({"user": alice}, {"user": bob}, {"group": group}):
            give(10, **whom)
        with django_assert_num_queries(3):
            assert len(services.measure_budgets(Budget.objects.all())) == 3


class TestRequests:
    @pytest.fixture
    def spent(self, conversation, alice):
        give(10, user=alice)
        return conversation

    async def test_the_socket_refuses_and_keeps_the_text_for_later(
        self, spent, session
    ):
        async with Chat(spent, session) as chat:
            await chat.command(type="send", client_id="c1", text="Hello")
            error = (await chat.until("error"))[-1]
        assert (error["code"], error["client_id"]) == ("quota", "c1")
        assert "for this month" in error["detail"]
        assert not await Message.objects.filter(client_id="c1").aexists()

    def test_a_turn_that_waits_is_not_sent(self, conversation, alice):
        turn = submit(conversation, "Hello").turn
        give(10, user=alice)
        async_to_sync(runner._drive_turns)(conversation.pk)
        turn = Turn.objects.get(pk=turn.pk)
        assert (turn.state, turn.error) == ("failed", "quota")

    def test_budget_refuses_requests_beside_replies(self, spent, alice):
        async def enter():
            async with spending.hold_place(alice.pk, "demo"):
                raise AssertionError

        with pytest.raises(RefusedError):
            async_to_sync(enter)()


class TestPages:
    def test_a_page_warns_from_four_fifths_on(self, client, conversation, alice):
        give(1_000, user=alice)
        assert 'id="budget-warning" class="meta" role="status" hidden' in page_of(
            client, conversation
        )
        use(alice, 706)  # and 94 of the replies
        page = page_of(client, conversation)
        assert "You have used 800 tokens of 1,000 tokens for this month (80 %)" in page
        assert "(80 %)" in client.get("/").text

    def test_the_account_page_has_all(self, client, alice, group):
        give(2, "dollars", group=group)
        give(50, user=alice)
        use(alice, 30)
        page = client.get("/account/").text
        assert "You have used 30 tokens of 50 tokens" in page
        assert "Your group Research has used $0.0003 of $2.00" in page

    def test_the_metrics_count_them(self, alice, bob, staff):
        for user, read in ((alice, 0), (bob, 80), (staff, 100)):
            give(100, user=user)
            use(user, read)
        found = {
            state: REGISTRY.get_sample_value("windowpane_budgets", {"state": state})
            for state in ("ok", "low", "used_up")
        }
        assert found == {"ok": 1, "low": 1, "used_up": 1}


class TestStaff:
    def test_staff_add_a_budget_and_see_its_usage(self, staff, alice):
        client = signed_in(staff)
        values = {"user": alice.pk, "group": "", "unit": "dollars", "amount": "4"}
        client.post(reverse("admin:budgets_budget_add"), values)
        use(alice, 100_000)
        page = client.get(reverse("admin:budgets_budget_changelist")).text
        for words in ("alice", "$4.00", "$1.00", "25 %"):
            assert words in page

    def test_budget_pages_need_the_right_to_see_figures(
        self, client, staff_with, alice
    ):
        user = staff_with()
        named = Permission.objects.filter(content_type__app_label="budgets")
        user.user_permissions.add(*named)
        client.force_login(user)
        for name in ("budget_changelist", "budget_add", "monthlyuse_changelist"):
            assert client.get(reverse(f"admin:budgets_{name}")).status_code == 403

    def test_use_is_exported_as_csv(self, staff, alice, group):
        alice.username = '=cmd("x")'
        alice.save()
        use(alice, 100_000, 20, 50_000)
        rows = MonthlyUse.objects.all()
        given = "".join(budgets_admin.write_csv(rows))
        [row] = csv.DictReader(io.StringIO(given))
        assert row["person"] == '\'=cmd("x")'
        assert (row["groups"], row["model"]) == ("Research", "gpt-9")
        assert (row["tokens_read"], row["dollars"]) == ("100000", "0.552000")
        chosen = {"action": "export_csv", "_selected_action": [rows[0].pk]}
        url = reverse("admin:budgets_monthlyuse_changelist")
        answer = signed_in(staff).post(url, chosen)
        assert answer["Content-Type"] == "text/csv"
        assert answer.getvalue().decode() == given
