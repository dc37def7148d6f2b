"""Models that accept images, and the costs of an image."""

import pytest

from chatsite.llm import vision


@pytest.mark.parametrize(
    ("name", "size", "tokens"),
    [
        # The examples of OpenAI's page.
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-4.1-mini", (1024, 1024), 1659),
        ("gpt-4.1-mini", (1800, 2400), 2353),
        # Its other figures for one tile, and for four.
        ("gpt-5.4-mini", (1024, 1024), 1659),
        ("gpt-4o-mini", (512, 512), 8500),
        ("gpt-5", (1024, 1024), 630),
        ("o3", (100, 100), 225),
        ("some-other-model", (512, 512), 255),
        ("demo", (2048, 2048), 85),
    ],
)
def test_an_image_has_the_tokens_that_its_provider_counts(name, size, tokens):
    assert vision.count_image(name, *size) == tokens


@pytest.mark.parametrize("size", [(0, 0), (1, 50_000), (2048, 2048), (3, 2)])
@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4.1-nano", "gpt-5-mini"])
def test_image_sizes_cost_tokens_within_bounds(name, size):
    assert 0 < vision.count_image(name, *size) < 4_000


def test_openai_models_are_known(settings):
    settings.OPENAI_API_KEY = "k"
    assert vision.takes_images("gpt-4o-mini")
    assert not vision.takes_images("o3-mini")
    assert vision.takes_images("demo")


def test_other_servers_are_asked_by_setting_only(settings):
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    assert not vision.takes_images("gpt-4o-mini")
    settings.IMAGE_MODELS = ["llava", "qwen*vl*"]
    assert vision.takes_images("llava")
    assert vision.takes_images("qwen2.5-vl:7b")
    assert not vision.takes_images("llava2")
