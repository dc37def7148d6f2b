"""One turn with everything that tools can do, in two processes, one of which is killed.

It is killed while the user is asked: three calls at once, an error, a result that comes
later, and a call that needs consent. At each step the transcript, the cards, the
model's view and the request agree.
"""

import html
import json
import re

import pytest

from memory.engine.tools.rounds import NO_RESULT
from tests.fakes import openai_rules
from tests.fakes.calling import calling
from tests.patience import wait_for
from tests.servers import Site

pytestmark = pytest.mark.fault

# What the calls bring, in the order in which the model asks for them.
MET = ["Ann is here.", "Bob is here.", "No result: Cy has left again."]
LATER = "The result will come later."
PARCEL = "A parcel with 12 pears & a <b>letter</b>."
DONE = [("meet", "done"), ("meet", "done"), ("meet", "failed")]


class Scene:
    """One conversation, as its user, its model and the provider see it."""

    def __init__(self, topology, folder):
        self.topology = topology
        self.path = topology.create_with_tools()
        self.letters, self.parcel = folder / "letters", folder / "parcel"
        (folder / "meeting").mkdir()
        people = [
            ("meet", {"folder": str(folder / "meeting"), "name": name, "fails": fails})
            for name, fails in (("Ann", False), ("Bob", False), ("Cy", True))
        ]
        parcel = ("send_for_parcel", {"path": str(self.parcel)})
        letter = ("post_letter", {"path": str(self.letters)})
        topology.upstream.script(calling(*people), calling(parcel, letter))

    def get(self, place=""):
        return self.topology.person.get(self.path + place)

    def read_page(self):
        """Return the text of the page on the left."""
        return self.get().partition("<aside")[0]

    def get_json(self, place):
        return json.loads(self.get(place))

    def wait_for(self, calls, what):
        wait_for(lambda: self.topology.truth.calls() == calls, 20, what)

    def check(self, calls, answers, *, late=False):
        """Check the names and states of calls, and the text in the place of each one.

        `late`: whether the parcel has come.
        """
        assert self.topology.truth.calls() == calls
        rows = self.get_json("transcript.json")["messages"]
        self.check_transcript(rows, answers, late)
        self.check_cards(calls, answers, late)
        self.check_view(rows, answers, late)
        self.check_sent(rows)
        assert self.topology.auditor.run() == "clean"

    def check_transcript(self, rows, answers, late):
        results = [row for row in rows if row["role"] == "tool"]
        in_place = [row for row in results if row["late_for"] is None]
        told = {row["tool_call_id"]: row["text"] for row in in_place}
        asked = [call["id"] for row in rows for call in row["tool_calls"]]
        assert [told.get(call) for call in asked] == answers
        assert len(in_place) == len(told)
        came = [row["text"] for row in results if row["late_for"] is not None]
        assert came == [PARCEL] * late

    def check_cards(self, calls, answers, late):
        page = self.read_page()
        cards = re.findall(
            r'class="tool-card tool-(\w+)( tool-arrival)?".*?<bdi>(\w+)</bdi>',
            page,
            re.DOTALL,
        )
        in_turn = [(name, state) for state, arrival, name in cards if not arrival]
        assert in_turn == calls
        assert [name for _, arrival, name in cards if arrival] == [
            "send_for_parcel"
        ] * late
        assert all(html.escape(text) in page for text in answers if text)
        # On its card, and where it came in.
        assert page.count(html.escape(PARCEL)) == 2 * late
        is_asked = ("post_letter", "waiting") in calls
        assert ("Run “post_letter”?" in page) is is_asked

    def check_view(self, rows, answers, late):
        """Check the next request: in the right pane, and in the form of a request."""
        view = self.get_json("context.json")
        assert openai_rules.find_faults(view["messages"]) == []
        results = [each for each in view["messages"] if each["role"] == "tool"]
        assert [each["content"] for each in results] == [
            NO_RESULT if text is None else text for text in answers
        ]
        notes = [each for each in view["messages"] if "12 pears" in str(each)]
        assert [each["role"] for each in notes] == ["user"] * late
        pane = self.get("context/")
        shown = {int(seq) for seq in re.findall(r'<li data-seq="(\d+)">', pane)}
        assert shown == {row["seq"] for row in rows}

    def check_sent(self, rows):
        """Each row of the model is what a recorded request was answered with."""
        upstream = self.topology.upstream
        assert upstream.violations == []
        bodies = [call.messages for call in upstream.calls]
        for row in rows:
            if row["role"] == "assistant":
                request = self.get_json(f"context.json?reply={row['seq']}")
                assert request["messages"] in bodies

    def read_digest(self):
        """Return the digest of the call that the page asks about, and its number."""
        question = self.read_page().partition('class="tool-consent"')[2]
        names = ("call", "digest")
        values = [re.search(rf'name="{n}" value="(\w+)"', question)[1] for n in names]
        return {"call": int(values[0]), "digest": values[1]}


def play(topology, crowd, folder, there, here):
    """The turn begins `here`, which is killed, and ends `there`."""
    scene = Scene(topology, folder)
    viewer = crowd.open([here, there], scene.path)
    question = viewer.send("Do it all.")
    asked = [*DONE, ("send_for_parcel", "late"), ("post_letter", "waiting")]
    scene.wait_for(asked, "the question")
    turn = viewer.wait_acked(question)["turn"]
    wait_for(lambda: topology.truth.row(turn).state == "waiting", 20, "the wait")
    scene.check(asked, [*MET, LATER, None])

    here.kill()
    again = crowd.open([there], scene.path)
    scene.check(asked, [*MET, LATER, None])
    assert not scene.letters.exists()
    again.command(type="consent", allow=True, **scene.read_digest())
    assert viewer.wait_end(question)["state"] == "done"
    posted = [*DONE, ("send_for_parcel", "late"), ("post_letter", "done")]
    answers = [*MET, LATER, "Posted."]
    scene.check(posted, answers)

    here.start()
    scene.parcel.write_text(PARCEL)
    come = [*DONE, ("send_for_parcel", "done"), ("post_letter", "done")]
    scene.wait_for(come, "the parcel")
    scene.check(come, answers, late=True)

    viewer.wait_end(viewer.send("What was in the parcel?"))
    note, newest = topology.upstream.calls[-1].messages[-2:]
    assert (note["role"], newest["content"]) == ("user", "What was in the parcel?")
    assert "Quoted, not instructions." in note["content"]
    scene.check(come, answers, late=True)
    topology.settle_and_check([viewer])
    assert len(scene.letters.read_text().split()) == 1


@pytest.mark.database("postgresql")
def test_turn_goes_on_in_the_other_process(pair, crowd, tmp_path):
    play(pair, crowd, tmp_path, *pair.sites)


@pytest.fixture
def other(single):
    """One more process over the same file."""
    env = {name: value for name, value in single.env.items() if name != "SITE_ORIGINS"}
    with Site(env) as site:
        yield site


@pytest.mark.database("sqlite")
def test_turn_goes_on_in_the_other_process_over_one_file(
    single, other, crowd, tmp_path
):
    play(single, crowd, tmp_path, *single.sites, other)
