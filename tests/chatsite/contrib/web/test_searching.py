"""Whatever a search engine answers is read as a few results of plain text."""

import asyncio

import pytest
from langchain_core.tools import ToolException

from chatsite.contrib.web import searching, web_checks
from tests.fakes.web import RESULTS

HERE = "tests.chatsite.contrib.web.test_searching"


def search_here(query, limit):
    return [{"url": f"https://example.org/{query}", "title": query, "text": "Found."}]


async def search_slowly(query, limit):
    await asyncio.sleep(60)


def search_nothing(query, limit):
    return None


async def test_searxng_is_asked_for_json(web):
    found = await searching.find_results("kamo & river", 3)
    assert web.seen == ["/search?q=kamo+%26+river&format=json"]
    assert [result.address for result in found] == [
        *("https://example.org/kamo", "https://www.example.net/鴨川"),
        "https://example.com/prompts",
    ]
    assert found[0].date == "2026-03-01"
    assert [result.site for result in found][:2] == ["example.org", "example.net"]
    assert all(len(result.text) <= searching.MAX_TEXT for result in found)


async def test_results_are_limited_to_the_wanted_number(web):
    many = [{"url": f"https://example.org/{n}", "title": "x"} for n in range(5_000)]
    web.found = many
    assert len(await searching.find_results("x", 2)) == 2
    assert len([*searching.read_results(many)]) == searching.MAX_READ


@pytest.mark.parametrize(
    "found", ["huge", "deep", "no json", "text", "moved", 7, None, {"url": "x"}]
)
async def test_an_answer_that_is_none_is_said(web, found):
    web.found = found
    asked = searching.find_results("x", 2)
    [answer] = await asyncio.gather(asked, return_exceptions=True)
    is_said = isinstance(answer, ToolException) and "search engine" in str(answer)
    assert answer == [] or is_said
    # It leads nowhere else.
    assert len(web.seen) == 1


@pytest.mark.parametrize("results", [RESULTS, [[]], [None], "x" * 100, b"x", {}])
def test_malformed_results_are_left_out(results):
    for result in searching.read_results(results):
        assert result.address.startswith("https://")
        assert "\n" not in result.title + result.text


async def test_a_function_of_the_site_can_search(settings):
    settings.WEB_SEARCH = f"{HERE}.search_here"
    [found] = await searching.find_results("tea", 5)
    assert found == ("https://example.org/tea", "tea", "Found.", "")
    settings.WEB_SEARCH = f"{HERE}.search_nothing"
    assert await searching.find_results("tea", 5) == []


async def test_a_function_has_its_time(settings):
    settings.WEB_SEARCH, settings.WEB_SECONDS = f"{HERE}.search_slowly", 0.1
    with pytest.raises(ToolException, match="within"):
        await searching.find_results("tea", 5)


@pytest.mark.parametrize(
    "setting",
    ["no.such.function", "tests", "tests.fakes.web.Pages", "http://", "http://a:b@c/"],
)
def test_a_setting_that_can_not_be_used_is_an_error(settings, setting):
    settings.WEB_SEARCH = setting
    [error] = web_checks.check_search()
    assert error.id == "chat.E011"
    assert "a:b" not in error.msg


@pytest.mark.parametrize("setting", ["", "http://searxng:8080/", f"{HERE}.search_here"])
def test_a_setting_that_can_be_used_is_none(settings, setting):
    settings.WEB_SEARCH = setting
    assert web_checks.check_search() == []


def test_the_doctor_asks_the_search_engine(web, settings):
    assert web_checks.try_search() == "SearXNG at 127.0.0.1 finds 3 pages for 'Kyoto'"
    web.found = "no json"
    with pytest.raises(ToolException, match="add json to search.formats"):
        web_checks.try_search()
    settings.WEB_SEARCH = ""
    assert web_checks.try_search().startswith("off")
