"""Prices of tokens, which are equal on every page."""

import re

import pytest
from django.core.cache import cache
from django.urls import reverse

from chatsite.contrib.lab.compare.turns import read_cost_history
from chatsite.llm import pricing
from chatsite.llm.provider_file import Model, ModelProvider, Prices
from memory.models import ModelCall
from tests.memory.scenes import plant

from ..scenes import signed_in

DEAR = Prices(input=100.0, cached=50.0, output=1_000.0)


@pytest.fixture
def listed(settings):
    models = [Model(name="dear", prices=DEAR), Model(name="free")]
    models.append(Model(name="usual", prices=Prices(input=100.0)))
    settings.PROVIDERS = (
        ModelProvider(name="One", base_url="http://x", models=models),
    )


@pytest.mark.usefixtures("listed")
class TestPrices:
    @pytest.mark.parametrize(
        ("name", "dollars"),
        [("dear", 9.0), ("usual", 5.5), ("free", 0), ("demo", 0), ("unknown", 0)],
    )
    def test_each_model_has_its_own(self, name, dollars):
        found = pricing.price_tokens(name, 100_000, 1_500, cached=50_000)
        assert found == pytest.approx(dollars)

    def test_money_is_spoken_of_where_any_has_some(self, settings):
        assert pricing.has_prices()
        models = [Model(name="free")]
        settings.PROVIDERS = (
            ModelProvider(name="One", base_url="http://x", models=models),
        )
        assert not pricing.has_prices()


@pytest.mark.parametrize(
    ("amount", "said"),
    [(0.0, "$0.0000"), (0.00123, "$0.0012"), (1234.5, "$1,234.50"), (-2, "-$2.00")],
)
def test_small_sums_keep_their_digits(amount, said):
    assert pricing.format_dollars(amount) == said


@pytest.mark.django_db
@pytest.mark.usefixtures("listed")
def test_pages_show_the_same_sum(conversation, staff):
    """One request of the dear model, one of the demo model, and one that failed."""
    calls = ModelCall.objects.filter(conversation=conversation)
    calls.update(tokens_input=2_000, tokens_cached=1_000, tokens_output=30)
    first, _second = calls.order_by("pk")
    plant(first, model="dear")
    failed = {"conversation": conversation, "purpose": "summary", "model": "dear"}
    calls.create(**failed, tokens_estimated=9_000, error="timeout", sha256="0" * 64)
    sum_of_all = "$0.1800"  # 1,000 fresh, 1,000 of the cache, 30 written
    cache.clear()
    reader = signed_in(staff)
    lists = (
        "admin:index",
        "admin:auth_user_change",
        "admin:memory_modelcall_changelist",
    )
    for name in lists:
        numbers = [conversation.owner_id] if name.endswith("change") else []
        page = reader.get(reverse(name, args=numbers)).text
        told = {each for each in re.findall(r"\$[\d.,]+", page) if float(each[1:])}
        assert told == {sum_of_all}, name
    # What was sent alone.
    [turn, free] = read_cost_history(conversation).turns
    assert turn.costs.price == pytest.approx(0.15)
    assert free.costs.price == 0


@pytest.mark.parametrize(
    ("prices", "kept", "factor", "extra"),
    [
        ({}, (1_000, 0), 2.0, 250),
        # Of Anthropic's hour, and of OpenAI's twelve.
        ({}, (1_000, 400), 2.0, 550),
        ({}, (1_000, 400), 1.25, 250),
        ({"cache_write": 100.0}, (1_000, 0), 2.0, 0),
        ({"cache_write_long": 300.0}, (1_000, 1_000), 1.25, 2_000),
        ({"input": 0.0}, (1_000, 400), 2.0, 0),
    ],
)
def test_writing_to_the_cache_has_its_price(settings, prices, kept, factor, extra):
    model = Model(name="m", prices=Prices(**{"input": 100.0, **prices}))
    settings.PROVIDERS = (
        ModelProvider(name="One", base_url="http://x", models=[model]),
    )
    assert pricing.count_extra("m", *kept, factor) == extra
    plain = pricing.price_tokens("m", 2_000)
    raised = pricing.price_tokens("m", 2_000, extra=extra)
    assert raised - plain == pytest.approx(extra * 100 / 1_000_000)
