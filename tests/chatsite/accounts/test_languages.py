"""English and Chinese: which one a browser gets, and that it gets nothing else."""

import asyncio
import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from chatsite import languages
from memory import transcript
from tests.catalogs import INLINE, Words

from ..page_readers import Reader, fragments_of, make_conversation
from ..sockets import Chat

CHINESE = "zh-hans"
LATIN = re.compile(r"[A-Za-z_]{3,}(?:\.json)?")
# What is called alike in every language.
NAMES = set(
    LATIN.findall(
        "Windowpane ChatGPT Claude Code Codex DeepSeek LangChain LangGraph LangMem "
        "Deep Agents alice evil "
        "token JSON Markdown UTF UTC API sha conversations.json summaries.json "
        "transcript.json CHAT_MODEL OPENAI_API_KEY client_id chat_messages English "
        "Ctrl Cmd Enter Esc Shift Alt Tab demo format CSV PDF OpenAI http testserver "
        "Word Excel PowerPoint EPUB zip"
    )
)
# Requests to the model stay as they are; pieces of a text have no known language.
AS_SENT, PIECES = ("raw", "wrap"), ("diff", "excerpt")
HASH = re.compile(r"\b[0-9a-f]{8,}…?")
CJK = re.compile("[\u3001\u3002\u4e00-\u9fff\uff08\uff09\uff1a\uff0c]")

SPACED = re.compile(rf"[。：；？！](?:{INLINE})*\s(?:{INLINE}|\s)*[^\s<]")


@pytest.fixture(autouse=True)
def own_language():
    """A request leaves its language to this thread; no other test may get it."""
    yield
    translation.deactivate()


def page_of(answer):
    return answer if isinstance(answer, str) else answer.content.decode()


def shown(answer, *skip):
    return Words(page_of(answer), skip).found


class TestChoice:
    def lang(self, client, path="/accounts/login/"):
        return re.search(r'<html lang="([\w-]+)"', client.get(path).content.decode())[1]

    @pytest.mark.parametrize(
        ("wish", "lang"),
        [
            ("", "en"),
            ("en-GB,en;q=0.9", "en"),
            ("zh-CN,zh;q=0.9,en;q=0.8", CHINESE),
            ("zh", CHINESE),
            ("zh-TW", CHINESE),
            ("de,fr;q=0.5", "en"),
            ("\x00;q=zh", "en"),
        ],
    )
    def test_language_is_the_browsers_at_first(self, wish, lang):
        assert self.lang(Client(headers={"Accept-Language": wish})) == lang

    def test_a_stranger_can_choose_and_stays_where_they_were(self):
        client = Client(headers={"Accept-Language": "zh-CN"})
        there = "/accounts/login/?next=/account/"
        answer = client.post(
            reverse("language"), {"language": "en", "next": there}, follow=True
        )
        assert answer.redirect_chain == [(there, 302)]
        assert self.lang(client) == "en"
        assert client.cookies["django_language"]["max-age"] > 30_000_000

    @pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example"])
    def test_the_choice_leads_to_no_other_site(self, there):
        values = {"language": CHINESE, "next": there}
        assert Client().post(reverse("language"), values).url == "/"

    def test_an_unknown_language_changes_nothing(self):
        client = Client()
        client.post(reverse("language"), {"language": "xx", "next": "/"})
        assert "django_language" not in client.cookies

    def test_every_page_offers_both_under_their_own_names(self, alice):
        client = Client()
        for page in (client.get(reverse("login")), self.account(client, alice)):
            text = " ".join(page.content.decode().split())
            assert 'value="en" lang="en" aria-pressed="true">English<' in text
            assert f'value="{CHINESE}" lang="{CHINESE}"' in text
            assert ">简体中文<" in text

    def account(self, client, user):
        client.force_login(user, "django.contrib.auth.backends.ModelBackend")
        return client.get(reverse("account"))

    def test_the_answer_to_a_form_leads_back_to_the_form(self, db):
        text = Client().post(reverse("login"), {"username": "a"}).content.decode()
        assert 'name="next" value="/accounts/login/"' in text


class TestPages:
    @pytest.fixture
    def conversation(self, alice, settings):
        settings.CONVERSATIONS_PER_MINUTE = 1
        settings.AXES_FAILURE_LIMIT = 2
        settings.SYSTEM_PROMPT = "梨。"
        return make_conversation(alice)

    def read(self, alice, conversation, language):
        with translation.override(language):
            yield from fragments_of(conversation)
        yield from Reader(alice, conversation, language).pages()

    def test_a_chinese_page_has_no_english_left(self, alice, conversation):
        found = {
            name: words
            for name, answer in self.read(alice, conversation, CHINESE)
            if (words := latin(shown(answer, *AS_SENT)) - NAMES - latin([name]))
        }
        assert found == {}, found

    def test_chinese_sentences_are_followed_by_no_space(self, alice, conversation):
        found = {
            name: spaced
            for name, answer in self.read(alice, conversation, CHINESE)
            if name != "export"  # Markdown, not a page
            and (spaced := SPACED.findall(page_of(answer)))
        }
        assert found == {}

    def test_an_english_page_has_no_chinese(self, alice, conversation):
        found = {
            name: words
            for name, answer in self.read(alice, conversation, "en")
            if (words := chinese(shown(answer, *PIECES)))
        }
        assert found == {}, found

    @pytest.mark.parametrize(
        ("language", "is_chinese"), [("en", False), (CHINESE, True)]
    )
    def test_the_demo_is_played_in_it_too(self, client, language, is_chinese):
        client.cookies["django_language"] = language
        shown = client.post(reverse("conversation-demo"), follow=True)
        conversation = shown.context["conversation"]
        texts = conversation.messages.filter(role="user").values_list("text", flat=True)
        said = {bool(CJK.search(text)) for text in [conversation.title, *texts]}
        assert said == {is_chinese}


def latin(texts):
    said = " ".join(
        text for text in texts if text[:1] != "{" and text != "null"
    )  # JSON
    return set(LATIN.findall(HASH.sub("", said)))


def chinese(texts):
    return [t for t in texts if CJK.search(t) and "梨" not in t and t != "简体中文"]


@pytest.mark.django_db(transaction=True)
class TestSockets:
    @pytest.fixture
    def conversation(self, alice):
        return transcript.create_conversation(alice, preset="langgraph")

    async def test_each_is_spoken_to_in_its_own(self, conversation, session):
        chinese = Chat(conversation, session, language=CHINESE)
        async with chinese as there, Chat(conversation, session) as here:
            for chat in (there, here, there, here):
                await chat.command(type="stop", turn=99)
            details = [(await chat.event())["detail"] for chat in (here, there) * 2]
        english = "There is no such turn in this conversation."
        assert details == [english, "这个对话里没有这一轮。"] * 2

    async def test_events_reach_each_page_in_its_own_language(
        self, conversation, session
    ):
        pages = [
            Chat(conversation, session, protocol="", language=language)
            for language in (CHINESE, "en")
        ]
        async with pages[0] as there, pages[1] as here:
            await there.command(type="send", client_id="c1", text="一")
            texts = await asyncio.gather(
                there.html("回复已完成"), here.html("Reply complete")
            )
        whose = [set(re.findall(r'class="who">(你|You)<', text)) for text in texts]
        assert whose == [{"你"}, {"You"}]

    def test_a_header_counts_where_there_is_no_cookie(self):
        scope = {"type": "websocket", "path": "/", "query_string": b"\xff"}
        wish = {**scope, "headers": [(b"accept-language", b"zh-CN,en;q=0.5")]}
        assert languages.of_scope(wish) == CHINESE
        assert languages.of_scope({**scope, "headers": []}) == "en"
        odd = {**scope, "headers": [(b"cookie", b"django_language=\xff\x00;;=")]}
        assert languages.of_scope(odd) == "en"


@pytest.mark.parametrize(
    ("text", "language"),
    [("预算是多少？", "zh"), ("予算はいくら", "ja"), ("예산", "ko"), ("Budget", "")],
)
def test_a_text_is_drawn_in_the_language_of_its_letters(text, language):
    assert languages.of_text(text) == language
