"""Parts of pages that are rendered once for all tabs."""

from django.utils import translation

from chatsite.live import fragments
from chatsite.pages import parts
from chatsite.pages.html_cache import Cache
from memory import actions, library, transcript

from ..scenes import page_of, signed_in, submit, url


def test_a_finished_turn_is_rendered_once_for_all_tabs(client, conversation, rendered):
    pages = [page_of(client, conversation) for _ in range(2)]
    synced = "".join(fragments.LivePage().sync(conversation))
    turn = conversation.turns.last()
    fragments.LivePage().draw_turn(conversation.pk, turn.pk, "")
    assert rendered["chat/_turn.html"] == conversation.turns.count() == 2
    found = fragments.transcript_pane.turn_view(conversation.pk, turn.pk)
    drawn = str(parts.render_turn(*found))
    assert all(drawn in html for html in (*pages, synced))


def test_a_reply_that_is_being_written_is_not_kept(client, conversation, rendered):
    submit(conversation, "Wait")
    for _ in range(2):
        page_of(client, conversation)
    assert rendered["chat/_live_reply.html"] == 2


def test_changed_parts_are_rendered_again(client, conversation):
    before = page_of(client, conversation)
    actions.pin_message(conversation, 1)
    transcript.rename_conversation(conversation, "Another title")
    after = page_of(client, conversation)
    assert "mark-pinned" in after
    assert "mark-pinned" not in before
    assert after.count(">Another title</span>") == 2  # above the page and in the list


def test_each_language_has_parts_of_its_own(client, conversation):
    english = page_of(client, conversation)
    with translation.override("zh-hans"):
        synced = "".join(fragments.LivePage().sync(conversation))
    assert ">Copy</button>" in english
    assert ">Copy</button>" not in synced


def test_the_open_row_and_an_archived_hit_are_marked(client, conversation):
    marked = 'mark">Archived</span>'
    row = f'<a href="{url("detail", conversation)}"'
    assert f'{row} aria-current="page">' in page_of(client, conversation)
    assert f"{row}>" in client.get("/").content.decode()
    library.archive_all([conversation])
    assert marked in client.get("/", {"q": "Kyoto"}).content.decode()
    assert marked not in client.get("/", {"view": "archived"}).content.decode()


def test_a_summary_is_rendered_again_when_it_changes(client, source, bob):
    reader = signed_in(bob)
    version = source.summaries.get(status="active").version
    before = page_of(reader, source)
    actions.rewrite_summary(source, version, "Another text.", author=bob)
    after = page_of(reader, source)
    assert after.count("<p>Another text.</p>") == 2  # in both panes
    assert "<p>Another text.</p>" not in before


def test_fields_that_were_filled_in_are_not_kept(client, conversation):
    first, second = (
        client.post(url("policy", conversation), {"preset": preset}).content.decode()
        for preset in ("one", "two")
    )
    assert "one is not one of" in first
    assert "two is not one of" in second


class TestCache:
    def test_cache_is_bounded_by_its_memory(self):
        cache = Cache(max_bytes=1_000_000)
        for number in range(300):
            cache.get_or_make(("part", f"{number}"), lambda: "梨" * 10_000)
            assert cache.currsize <= 1_000_000
        assert 30 < len(cache) < 60

    def test_cache_keeps_what_was_requested_last(self):
        cache = Cache(max_bytes=1_000)
        made = []

        def keep(key):
            return cache.get_or_make(key, lambda: made.append(key) or "x" * 100)

        for number in range(100):
            assert keep("often") == "x" * 100
            keep(f"{number}")
        keep("0")
        assert made.count("often") == 1
        assert made.count("0") == 2

    def test_html_larger_than_the_cache_is_made_each_time(self):
        cache = Cache(max_bytes=1_000)
        cache.get_or_make("small", lambda: "x")
        for _ in range(2):
            assert cache.get_or_make("large", lambda: "y" * 2_000) == "y" * 2_000
        assert list(cache) == ["small"]
