"""Decisions which conversation a request continues.

Each way in which other programs merged, split or cut conversations is a test.
"""

import pytest

from bench.endpoint.in_memory import MemoryTarget

from .clients import LONG, Client, reply, system, user

HELLO = user("Where is Kyoto, and how long does the train take?")
YES = reply("Yes.")
NAMED = {"x-openwebui-chat-id": "one"}


@pytest.fixture
def client():
    return Client()


class TestGoingOn:
    def test_a_first_message_is_a_single_call(self, client):
        assert client.send(HELLO).lineage == "single"

    def test_a_second_request_extends_it(self, client):
        first = client.send(HELLO)
        second = client.send(HELLO, YES, user("And Osaka?"))
        assert (second.lineage, second.conversation) == ("continued", "c0")
        assert client.texts(first.conversation)[2:] == ["And Osaka?", "Yes."]

    def test_an_unknown_history_is_a_conversation(self, client):
        assert client.send(HELLO, reply("I do."), user("Go on")).lineage == "new"

    def test_conversation_continues_with_another_model(self, client):
        client.send(HELLO, headers={"authorization": "Bearer one"})
        again = client.send(
            *(HELLO, YES, user("And?")),
            model="another",
            headers={"authorization": "Bearer two"},
        )
        assert again.lineage == "continued"

    def test_a_clock_in_the_system_prompt_begins_nothing(self, client):
        client.send(system("It is 12:00"), HELLO)
        again = client.send(
            *(system("It is 12:01"), system("New tools."), HELLO, YES, user("And?")),
            tools=[{"type": "function", "function": {"name": "new"}}],
        )
        assert again.lineage == "continued"

    def test_a_last_message_that_is_written_anew_is_the_same(self, client):
        client.send(user("One and two"), answer=LONG)
        cached = {"type": "text", "text": "One and two"}
        cached["cache_control"] = {"type": "ephemeral"}
        client.send(user([cached]), reply(LONG, refusal=None), user("Three"))
        assert client.decision.why == ("tip",)
        assert client.decision.rewritten == ()

    def test_a_reply_that_the_client_has_only_a_part_of(self, client):
        client.send(HELLO, answer=LONG)
        stopped = client.send(HELLO, reply(LONG[:60]), user("Go on"))
        assert (stopped.lineage, client.decision.rewritten) == ("continued", ((1, 1),))

    def test_a_prefix_of_a_reply_asks_for_the_rest(self, client):
        client.send(HELLO)
        assert client.send(HELLO, YES).lineage == "continued"

    def test_parallel_results_are_compared_by_call(self, client):
        names = ("a", "b")
        calls = [
            {"id": n, "type": "function", "function": {"name": n, "arguments": "{}"}}
            for n in names
        ]
        asked = {"role": "assistant", "content": None, "tool_calls": calls}
        results = [
            {"role": "tool", "tool_call_id": n, "content": f"of {n}"} for n in names
        ]
        client.send(HELLO, asked, *results)
        again = client.send(HELLO, asked, *reversed(results), YES, user("And?"))
        assert again.lineage == "continued"


class TestNotMerged:
    def test_the_same_first_200_characters_are_not_one_conversation(self, client):
        shared = "The rules of this project are as follows. " * 8
        one = client.send(user(shared + "Fix the parser."), answer=LONG)
        other = client.send(user(shared + "Write the tests."), answer="Written.")
        assert one.conversation != other.conversation
        more = client.send(
            user(shared + "Write the tests."), reply("Written."), user("And?")
        )
        assert more.conversation == other.conversation

    def test_model_and_system_prompt_alone_do_not_match(self, client):
        prompt = system("You are a helpful assistant.")
        first = client.send(prompt, HELLO, answer=LONG)
        second = client.send(prompt, user("Another thing"), answer=LONG)
        assert first.conversation != second.conversation

    def test_two_equal_first_requests_are_two_conversations(self, client):
        client.send(HELLO)
        second = client.send(HELLO)
        assert (second.lineage, second.conversation) == ("single", "c1")
        assert client.decision.why == ("equal-first",)

    def test_newest_of_two_equal_conversations_is_continued(self, client):
        client.send(HELLO)
        client.send(HELLO)
        assert client.send(HELLO, YES, user("And?")).conversation == "c1"
        assert client.send(HELLO, YES, user("But?")).conversation == "c0"

    def test_examples_that_all_requests_begin_with_join_none(self, client):
        examples = (user("2 + 2"), reply("4"), user("3 + 3"), reply("6"))
        client.send(*examples, user("4 + 4"), answer="8")
        second = client.send(*examples, user("5 + 5"), answer="10")
        assert second.lineage == "new"
        assert client.decision.why == ("no-served-reply",)

    def test_short_replies_prove_nothing(self, client):
        client.send(user("Is it day?"), answer="Yes.")
        client.send(user("Is it day?"), YES, user("Is it late?"), answer="No.")
        foreign = client.send(
            *(user("Am I right here?"), YES, user("Shall I go?"), reply("No.")),
            user("Then I stay"),
        )
        assert foreign.lineage == "new"

    def test_replies_that_fit_two_are_a_new_one(self, client):
        for name in ("one", "other"):
            client.send(user(f"The {name} beginning of it"), answer=LONG)
        cut = client.send(reply(LONG), user("Go on"))
        assert (cut.lineage, client.decision.why) == ("new", ("two-fit",))

    def test_two_tabs_with_like_questions_and_one_short_reply(self, client):
        """Two histories begin in the middle: one tab's is known by its end alone, and
        the other tab's has more, but not its question.
        """
        history = []
        for number in range(12):
            said = f"Reply {number} has words of its own. " * 10
            history.append(user(f"What is number {number}?"))
            client.send(*history, answer=said)
            history.append(reply(said))
        cut, remind = history[4:], user("<system-reminder/>")
        first = user("Look up the weather for Kyoto.")
        second = user("Look up the weather for Osaka.")
        client.send(*cut, first, remind, answer="OK.")
        fork = client.send(*cut, second, remind, answer="OK.")
        more = client.send(*cut, second, reply("OK."), user("And?"), remind)
        assert more.conversation == fork.conversation

    def test_equal_texts_of_two_users_stay_apart(self, client):
        other = Client(client.target, person=2)
        client.send(HELLO, answer=LONG)
        assert other.send(HELLO, reply(LONG), user("And?")).lineage == "new"

    def test_deleted_conversation_is_not_continued(self, client):
        first = client.send(HELLO, answer=LONG)
        client.store.delete(first.conversation)
        again = client.send(HELLO, reply(LONG), user("And?"))
        assert (again.lineage, again.conversation) == ("new", "c1")

    def test_a_similar_prompt_with_the_same_short_reply_is_another(self, client):
        client.send(user("Remember the number 17."), answer="OK.")
        other = client.send(
            user("Remember the number 18."), reply("OK."), user("Which one?")
        )
        assert other.lineage == "new"


class TestBranches:
    def begin(self, client):
        client.send(HELLO, answer=LONG)
        client.send(HELLO, reply(LONG), user("And Osaka?"), answer="No.")

    def test_an_edit_is_a_branch_with_its_parent(self, client):
        self.begin(client)
        edited = client.send(HELLO, reply(LONG), user("And Nara?"))
        assert (edited.lineage, edited.parent) == ("branch", "c0")
        assert client.decision.parent_position == 2
        assert client.texts("c0")[2:] == ["And Osaka?", "No."]

    def test_changed_reply_starts_a_branch(self, client):
        self.begin(client)
        again = client.send(HELLO, reply(LONG), user("And Osaka?"), answer="Well.")
        assert (again.lineage, client.decision.parent_position) == ("branch", 3)

    def test_branches_of_both_replies_continue(self, client):
        self.begin(client)
        asked = HELLO, reply(LONG), user("And Osaka?")
        client.send(*asked, answer="Well.")
        assert client.send(*asked, reply("No."), user("Why?")).conversation == "c0"
        assert client.send(*asked, reply("Well."), user("So?")).conversation == "c1"

    def test_two_tabs_that_go_on_from_one_reply_are_two_branches(self, client):
        client.send(HELLO, answer=LONG)
        one = client.send(HELLO, reply(LONG), user("And Osaka?"), answer=None)
        other = client.send(HELLO, reply(LONG), user("And Nara?"), answer=None)
        assert (one.lineage, other.lineage) == ("continued", "branch")

    def test_branches_of_one_session_are_not_mixed(self):
        client = Client(session_id="one")
        client.send(HELLO, answer=LONG)
        left = (HELLO, reply(LONG), user("Left"))
        right = (HELLO, reply(LONG), user("Right"))
        names = [client.send(*turn).conversation for turn in (left, right)]
        for _ in range(3):
            left = *left, YES, user("Further left")
            right = *right, YES, user("Further right")
            assert [client.send(*each).conversation for each in (left, right)] == names

    def test_a_reply_that_the_person_has_changed_is_a_branch(self, client):
        client.send(HELLO, answer=LONG)
        client.send(HELLO, reply(LONG), user("And Osaka?"), answer="An hour by rail")
        swiped = client.send(
            *(HELLO, reply(LONG), user("And Osaka?"), reply("It is a sea port")),
            user("Why?"),
        )
        assert (swiped.lineage, client.decision.parent_position) == ("branch", 3)


class TestRetries:
    def test_a_first_request_that_failed(self, client):
        first = client.send(HELLO, answer=None)
        again = client.send(HELLO)
        assert (again.lineage, again.conversation) == ("retry", first.conversation)
        assert client.texts(first.conversation) == [HELLO["content"], "Yes."]

    @pytest.mark.parametrize(
        "headers", [{"x-stainless-retry-count": "1"}, {"idempotency-key": "k"}]
    )
    def test_request_whose_answer_was_lost(self, client, headers):
        client.send(HELLO, headers={**headers, "x-stainless-retry-count": "0"})
        assert client.send(HELLO, headers=headers).lineage == "retry"

    def test_a_key_alone_joins_nothing(self, client):
        client.send(HELLO, headers={"idempotency-key": "k"})
        other = client.send(user("Else"), headers={"idempotency-key": "k"})
        assert other.lineage == "single"


class TestRewritten:
    def test_text_that_was_found_and_taken_out_again(self, client):
        found = "### Context\nKyoto is a city.\n\n### Question\n"
        client.send(user(found + HELLO["content"]), answer="Two hours.")
        later = user(found + "And what does it cost?")
        more = client.send(HELLO, reply("Two hours."), later)
        assert (more.lineage, client.decision.rewritten) == ("continued", ((0, 0),))
        assert client.decision.first_new == 2

    def test_details_around_a_reply(self, client):
        client.send(HELLO, answer="4")
        wrapped = reply('<details type="reasoning">\n> Hm.\n</details>\n4')
        more = client.send(HELLO, wrapped, user("And?"))
        assert (more.lineage, client.decision.rewritten) == ("continued", ((1, 1),))

    def test_rewritten_question_and_reply_continue(self, client):
        client.send(user(f"### Context\nA city.\n{HELLO['content']}"), answer="By rail")
        wrapped = reply('<details type="reasoning">\n> Hm.\n</details>\nBy rail')
        more = client.send(HELLO, wrapped, user("And?"))
        assert more.lineage == "continued"
        assert client.decision.rewritten == ((0, 0), (1, 1))

    def test_changing_reminders_begin_nothing(self, client):
        def remind(text, minute):
            reminder = f"<system-reminder>Minute {minute}.</system-reminder>"
            return user([{"type": "text", "text": t} for t in (reminder, text)])

        turns = []
        for minute in range(4):
            question = f"What comes after the town with the number {minute}?"
            turns.append(question)
            history = []
            for place, each in enumerate(turns):
                is_last = place == minute
                history.append(remind(each, minute) if is_last else user(each))
                history += [] if is_last else [reply(f"{LONG} {place}")]
            sent = client.send(*history, answer=f"{LONG} {minute}")
            assert sent.conversation == "c0"

    def test_a_constant_last_block_swallows_nothing(self, client):
        tail = user("<system-reminder>Be brief.</system-reminder>")
        history = []
        for turn in range(16):
            history.append(user(f"Question {turn} of this long day?"))
            sent = client.send(*history, tail, answer=f"Answer {turn}.")
            history.append(reply(f"Answer {turn}."))
            assert sent.conversation == "c0"
        kept = client.texts("c0")
        said = [each["content"] for each in history]
        assert [text for text in kept if text != tail["content"]] == said

    def test_new_messages_are_kept_after_a_rewritten_one(self, client):
        client.send(HELLO, answer=LONG)
        client.send(user("Quite another question"), reply(LONG), user("And?"))
        assert client.decision.kind == "continued"
        assert client.texts("c0")[2:] == ["And?", "Yes."]


class TestClientCompaction:
    def begin(self, client):
        history = []
        for turn in range(5):
            history.append(user(f"Question {turn} of this long day?"))
            client.send(*history, answer=f"Answer number {turn}.")
            history.append(reply(f"Answer number {turn}."))
        return history

    def test_a_summary_before_the_newest_messages(self, client):
        history = self.begin(client)
        summary = user("What came before, in short: four questions.")
        more = client.send(summary, *history[-2:], user("And now?"))
        assert (more.lineage, more.conversation) == ("client-compacted", "c0")
        assert (client.decision.summary, client.decision.first_new) == (1, 3)

    def test_compaction_keeps_the_old_transcript(self, client):
        history = self.begin(client)
        client.send(user("In short: four."), *history[-2:], user("And now?"))
        said = [each["content"] for each in history]
        assert client.texts("c0") == [*said, "In short: four.", "And now?", "Yes."]

    def test_the_shorter_history_goes_on_by_its_own_chain(self, client):
        history = self.begin(client)
        short = (user("In short: four."), *history[-2:], user("And now?"))
        client.send(*short)
        more = client.send(*short, YES, user("Thanks"))
        assert (more.lineage, client.decision.why) == ("continued", ("tip",))

    def test_a_window_that_slides(self, client):
        history = self.begin(client)
        for turn in range(5, 9):
            history.append(user(f"Question {turn} of this long day?"))
            sent = client.send(*history[-5:], answer=f"Answer number {turn}.")
            history.append(reply(f"Answer number {turn}."))
            assert sent.conversation == "c0"
        assert client.texts("c0") == [each["content"] for each in history]

    def test_common_replies_do_not_hide_a_compaction(self, client):
        asked = user("And how long is it to Osaka?")
        client.send(HELLO, answer=LONG)
        client.send(HELLO, reply(LONG), asked, answer="OK.")
        for number in range(10):
            client.send(user(f"Note the number {number}."), answer="OK.")
        more = client.send(asked, reply("OK."), user("Thanks"))
        assert (more.lineage, more.conversation) == ("client-compacted", "c0")

    def test_a_client_that_says_so_needs_no_suffix(self):
        client = Client(x_claude_code_session_id="one")
        self.begin(client)
        told = {"x-claude-code-context-compacted": "true"}
        more = client.send(user("In short: four."), user("Go on"), headers=told)
        assert (more.lineage, client.decision.summary) == ("client-compacted", 1)

    def test_compaction_header_is_ignored_with_a_shared_id(self):
        client = Client(x_claude_code_session_id="one")
        self.begin(client)
        client.send(user("Another"), answer=LONG)
        client.send(user("Another"), reply(LONG), user("Go on"))
        told = {"x-claude-code-context-compacted": "true"}
        more = client.send(user("In short: four."), user("Go on"), headers=told)
        assert more.lineage == "new"


class TestHeaders:
    @pytest.mark.parametrize("headers", [{}, NAMED])
    def test_newest_of_two_equal_requests_is_continued(self, client, headers):
        """Each time with other finds around the question, which then goes without."""
        client.headers = headers
        for finds in ("Maps of the north", "Maps of the south"):
            client.send(user(f"{finds}\n\n{HELLO['content']}"))
        more = client.send(HELLO, YES, user("And?"))
        expected = ("continued", "c1") if headers else ("new", "c2")
        assert (more.lineage, more.conversation) == expected

    @pytest.mark.parametrize("headers", [{}, NAMED])
    def test_a_short_reply_that_was_there_before(self, client, headers):
        """The first one has come back in the form in which the second one comes now."""
        client.headers = headers
        thought, second = reply("<i>thought</i>\nYes."), user("Does it leave today?")
        client.send(HELLO)
        client.send(HELLO, thought, second)
        more = client.send(user("In short: Kyoto."), second, thought, user("And?"))
        expected = ("client-compacted", "c0") if headers else ("new", "c1")
        assert (more.lineage, more.conversation) == expected

    def test_a_wrong_id_joins_nothing(self):
        target = MemoryTarget()
        one, other = Client(target, session_id="1"), Client(target, session_id="2")
        one.send(HELLO, answer=LONG)
        other.send(user("Another"), answer="It is another.")
        other.send(user("Another"), reply("It is another."), user("Go on"))
        wrong = other.send(HELLO, reply(LONG), user("And?"))
        assert wrong.conversation == "c0"
        foreign = one.send(user("A third"), reply("Said elsewhere"), user("And?"))
        assert foreign.lineage == "new"

    def test_the_right_id_finds_a_branch_that_nothing_else_leads_to(self):
        """The branch is found by the part that it shares with its parent; the reminder
        that comes last is in many.
        """
        client, remind = Client(session_id="1"), user("<system-reminder/>")
        asked = [user(f"Which train leaves at {hour}?") for hour in (7, 8, 9)]
        said = [f"The one that leaves at {hour}. " * 10 for hour in (7, 8, 9)]
        begun = (HELLO, reply(LONG), asked[0])
        client.send(HELLO, remind, answer=LONG)
        client.send(*begun, remind, answer=said[0])
        for answer in said[1:]:
            client.send(*begun, reply(said[0]), asked[1], remind, answer=answer)
        for number in range(12):
            other = {"session-id": f"other {number}"}
            client.send(user(f"Else {number}"), remind, headers=other)
        cut = asked[0], reply(said[0]), asked[1], reply(f"<i>hm</i>\n{said[2]}")
        more = client.send(*cut, asked[2], remind)
        assert (more.lineage, more.conversation) == ("client-compacted", "c1")

    def test_a_copy_under_a_new_id_is_a_branch(self):
        target = MemoryTarget()
        Client(target, session_id="1").send(HELLO, answer=LONG)
        copy = Client(target, session_id="2")
        assert copy.send(HELLO, reply(LONG), user("And?")).lineage == "branch"

    def test_the_right_id_helps_where_a_text_is_short(self, client):
        history = (user("Hi"), reply("Yo"), user("Up?"))
        own = Client(session_id="1")
        for each in (client, own):
            each.send(*history[:1], answer="Yo")
            each.send(*history, answer="No")
        cut = user("Up?"), reply("No"), user("So?")
        assert client.send(*cut).lineage == "new"
        assert own.send(*cut).lineage == "client-compacted"

    def test_an_id_that_stands_for_none_is_none(self):
        client = Client(x_librechat_conversation_id="new")
        client.send(HELLO, answer=LONG)
        named = {"x-librechat-conversation-id": "8d1c"}
        more = client.send(HELLO, reply(LONG), user("And?"), headers=named)
        assert more.lineage == "continued"

    def test_a_title_call_is_single_and_linked(self):
        client = Client(x_opencode_session="1")
        client.send(HELLO, answer=LONG)
        client.send(HELLO, reply(LONG), user("And?"))
        title = client.send(user(f"A title for: {HELLO['content']} {LONG}"))
        assert title.lineage == "single"
        assert client.decision.linked == "c0"

    def test_a_subagent_is_a_conversation_with_a_link(self):
        client = Client(x_claude_code_session_id="1")
        client.send(HELLO, answer=LONG)
        client.send(HELLO, reply(LONG), user("And?"))
        agent = {"x-claude-code-agent-id": "a", "x-claude-code-parent-agent-id": ""}
        sub = client.send(user("Search the files"), headers=agent)
        assert sub.conversation == "c1"
        assert client.decision.linked == "c0"


ACKNOWLEDGED = (
    "Understood.",
    "OK",
    "I have read the summary of what came before, and go on from there.",
    "[NOTE] Earlier messages were left out to keep the context short. " * 4,
)


class TestAcknowledgement:
    """A client's own reply to its own summary says nothing against a history."""

    def talk(self, turns=5):
        client, said = Client(), []
        for number in range(turns):
            said.append(user(f"Which of the lamps in house {number} is broken?"))
            client.send(*said, answer=f"Lamp {number} in the hall.")
            said.append(reply(f"Lamp {number} in the hall."))
        return client, said

    @pytest.mark.parametrize("text", ["", *ACKNOWLEDGED])
    def test_a_first_message_that_is_kept_before_it(self, text):
        client, said = self.talk()
        summary = [user("Summary: lamps were looked at.")]
        summary += [reply(text)] if text else []
        sent = [said[0], *summary, *said[4:], user("And the next one?")]
        answer = client.send(*sent)
        assert (answer.conversation, answer.lineage) == ("c0", "continued")

    @pytest.mark.parametrize("text", ACKNOWLEDGED)
    def test_a_reply_between_two_known_ones_counts(self, text):
        client, said = self.talk(2)
        client.send(user("Hello"), answer="Hello.")
        other = [user("Which colour?"), reply(text)]
        sent = [said[0], reply("Hello."), *other, *other, *said[3:], user("And?")]
        assert client.send(*sent).conversation != "c0"
