"""LangChain's `SummarizationMiddleware`, with nothing changed but its import.

What is public in LangChain's own tests of it (libs/langchain_v1, MIT licence) is held
here by comparison: both classes get the same arguments and messages.
"""

import inspect

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware as Original
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from memory.agents.langchain import SummarizationMiddleware

from .agents import Model, example, model, summariser

THOUSAND = {"max_input_tokens": 1000}


class Claude(Model):
    @property
    def _llm_type(self):
        return "anthropic-chat"


class Provided(Model):
    def _get_ls_params(self, stop=None, **kwargs):
        return {"ls_provider": "mock", "ls_model_type": "chat"}


def measure(messages):
    return 200 * len(messages)


def middleware(chat_model=None, **options):
    chat_model = chat_model or model(profile=THOUSAND)
    return SummarizationMiddleware(chat_model, summarizer=summariser(), **options)


def said(*texts):
    return [HumanMessage(text) for text in texts]


def kept(made, messages):
    """The messages after the summary in a request; None: all of them, no summary."""
    sent = []
    request = ModelRequest(
        model=made.model, messages=messages, state={"messages": messages}
    )
    made.wrap_model_call(request, lambda request: sent.extend(request.messages))
    return sent[1:] if sent[0].additional_kwargs else None


def kept_by_original(made, messages):
    update = made.before_model({"messages": messages}, None)
    return update["messages"][2:] if update else None


def describe(make):
    try:
        make()
    except (TypeError, ValueError) as error:
        return type(error), str(error)


def test_arguments_have_the_same_names_and_defaults():
    ours = inspect.signature(SummarizationMiddleware).parameters
    for name, parameter in inspect.signature(Original).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            assert (ours[name].kind, ours[name].default) == (
                parameter.kind,
                parameter.default,
            )


@pytest.mark.parametrize(
    "options",
    [
        {"trigger": ("messages", 5)},
        {"trigger": ("messages", 5), "keep": ("messages", 20)},
        {"trigger": ("messages", 2), "keep": ("messages", 4)},
        {"trigger": ("tokens", 1200.0), "keep": ("tokens", 400.0)},
        {"trigger": ("tokens", 800.5), "keep": ("messages", 1)},
        {"trigger": {"tokens": 600, "messages": 5}},
        {"trigger": {"messages": 3}, "keep": ("tokens", 1)},
        {"trigger": [("messages", 6), ("tokens", 800)], "keep": ("messages", 3)},
        {"trigger": [{"tokens": 1000, "messages": 6}, {"tokens": 1400}]},
        {"trigger": []},
        {"trigger": None},
    ],
)
def test_trigger_and_keep_work_as_in_the_original(options):
    options = {"keep": ("messages", 2), "token_counter": measure} | options
    for count in range(1, 8):
        messages = said(*map(str, range(count)))
        original = Original(model(), summarizer=lambda _: "A summary.", **options)
        expected = kept_by_original(original, messages)
        assert kept(middleware(model(), **options), messages) == expected


@pytest.mark.parametrize(
    ("trigger", "keep", "left"),
    [
        (("fraction", 0.81), ("fraction", 0.5), None),
        (("fraction", 0.8), ("fraction", 0.5), ["3", "4"]),
        (("fraction", 0.8), ("fraction", 0.6), ["2", "3", "4"]),
        (("fraction", 0.8), ("fraction", 0.8), None),
        ({"fraction": 0.8, "messages": 4}, ("tokens", 400), ["3", "4"]),
        ({"fraction": 0.8, "messages": 5}, ("tokens", 400), None),
    ],
)
def test_fractions_are_of_the_models_window(trigger, keep, left):
    made = middleware(trigger=trigger, keep=keep, token_counter=measure)
    found = kept(made, said("1", "2", "3", "4"))
    assert (found and [message.text for message in found]) == left


@pytest.mark.parametrize(
    "options",
    [
        {"trigger": ("fraction", 0.0)},
        {"trigger": ("fraction", 1.5)},
        {"keep": ("fraction", -0.1)},
        {"trigger": ("tokens", 0)},
        {"trigger": ("messages", -5)},
        {"keep": ("tokens", 0)},
        {"trigger": ("invalid", 100)},
        {"keep": ("invalid", 100)},
        {"trigger": {"invalid": 100}},
        {"trigger": {"fraction": "invalid"}},
        {"trigger": {"tokens": 1000.5}},
        {"trigger": {"messages": "10"}},
        {"trigger": {"messages": True}},
        {"trigger": {}},
        {"trigger": [{"tokens": 1000}, {}]},
        {"trigger": ["invalid"]},
        {"trigger": "foo"},
        {"trigger": ("fraction", 0.5), "profile": None},
        {"keep": ("fraction", 0.5), "profile": {}},
        {"summarizer": 5},
    ],
)
def test_arguments_are_rejected_as_in_the_original(options):
    profile = options.pop("profile", THOUSAND)
    refused = describe(lambda: Original(model(profile=profile), **options))
    # LangChain 1.4.0 takes any summarizer, and fails when it needs it.
    assert refused or options == {"summarizer": 5}
    again = describe(lambda: SummarizationMiddleware(model(profile=profile), **options))
    assert again == refused


def test_deprecated_names_are_accepted():
    with pytest.warns(DeprecationWarning, match="is deprecated") as warned:
        made = middleware(max_tokens_before_summary=500, messages_to_keep=5)
    assert (made.trigger, made.keep) == (("tokens", 500), ("messages", 5))
    assert [str(each.message) for each in warned] == [
        "max_tokens_before_summary is deprecated. "
        "Use trigger=('tokens', value) instead.",
        "messages_to_keep is deprecated. Use keep=('messages', value) instead.",
    ]
    # The line of the caller, so that it is shown.
    assert {each.filename for each in warned} == {__file__}


def test_new_name_wins_over_the_deprecated_one():
    new = {"trigger": ("tokens", 2000), "keep": ("messages", 5)}
    with pytest.warns(DeprecationWarning, match="is deprecated"):
        made = middleware(**new, max_tokens_before_summary=1000, messages_to_keep=10)
    assert (made.trigger, made.keep) == (("tokens", 2000), ("messages", 5))


def test_misspelt_name_is_rejected():
    with pytest.raises(TypeError, match="triger"):
        middleware(triger=("tokens", 2000))


def test_later_changes_of_a_trigger_have_no_effect():
    clause = {"tokens": 1000}
    trigger = [clause]
    made = middleware(model(), trigger=trigger, keep=("messages", 1))
    clause["messages"] = 1
    trigger.append(("messages", 1))
    assert made.trigger == [{"tokens": 1000}]
    assert kept(made, said("1", "2")) is None


def test_the_token_counter_may_be_set_later():
    made = middleware(model(), trigger=("tokens", 1000), keep=("messages", 1))
    assert kept(made, said("1", "2")) is None
    made.token_counter = lambda messages: 2000
    assert kept(made, said("1", "2")) == said("2")


def test_claude_has_fewer_characters_to_a_token():
    text = said("a" * 330)
    assert middleware(Claude()).token_counter(text) > 100
    assert middleware(model()).token_counter(text) < 90


def test_chinese_text_is_not_counted_as_a_quarter():
    assert middleware().token_counter(said("请记住我的名字" * 100)) >= 500


@pytest.mark.parametrize(
    ("reported", "provider", "is_due"),
    [(10_001, "mock", True), (100, "mock", False), (10_001, "other", False)],
)
def test_the_providers_count_satisfies_a_clause(reported, provider, is_due):
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": reported}
    messages = [
        *said("hello"),
        AIMessage(
            "hi", usage_metadata=usage, response_metadata={"model_provider": provider}
        ),
        *said("and?"),
    ]
    chat_model = Provided()
    trigger = {"tokens": 10_000, "messages": 2}
    made = middleware(chat_model, trigger=trigger, keep=("messages", 1))
    assert (kept(made, messages) is not None) == is_due


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("Sum up: {messages}", "Sum up: (in the next message)"),
        ('As {{"a": 1}}: {messages}', 'As {"a": 1}: (in the next message)'),
        ('As {"a": 1}: {messages}', 'As {"a": 1}: (in the next message)'),
        ("With a {: {messages}", "With a {: (in the next message)"),
    ],
)
def test_the_prompt_is_filled_in_as_a_format(prompt, asked):
    made = middleware(
        model(), trigger=("messages", 2), keep=("messages", 1), summary_prompt=prompt
    )
    kept(made, said("1", "2"))
    (request,) = made._compactor.writer.model.requests
    assert asked in request[0].text


def test_schema_replaces_the_default_prompt():
    class Notes(BaseModel):
        user_info: str

    writer = model('{"user_info": "Lance"}')
    made = SummarizationMiddleware(
        model(),
        trigger=("messages", 2),
        keep=("messages", 1),
        summarizer=writer,
        schema=Notes,
    )
    assert kept(made, said("1", "2")) == said("2")
    (request,) = writer.requests
    assert "user_info" in request[0].text
    assert "SESSION INTENT" not in request[0].text


def test_a_changed_import_keeps_the_transcript_and_shortens_the_request():
    chat_model = model()
    agent = create_agent(
        chat_model,
        middleware=[
            middleware(chat_model, trigger=("messages", 6), keep=("messages", 2))
        ],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    for text in ("one", "two", "three", "four"):
        state = agent.invoke({"messages": said(text)}, thread)
    assert len(state["messages"]) == 8
    summary, *window = chat_model.requests[-1]
    # The call that triggers is already short, as LangChain's users know it.
    assert "Summary 1." in summary.text
    assert summary.additional_kwargs == {"lc_source": "summarization"}
    assert [message.text for message in window] == ["three", "reply 3", "four"]


def test_a_summariser_that_fails_costs_no_answer():
    made = SummarizationMiddleware(
        model(),
        trigger=("messages", 2),
        keep=("messages", 1),
        summarizer=summariser(*[OSError("down")] * 3),
    )
    assert kept(made, said("1", "2")) is None


def test_system_messages_of_the_thread_stay_in_front():
    made = middleware(model(), trigger=("messages", 3), keep=("messages", 1))
    messages = [SystemMessage("Rule 1."), *said("1", "2", "3")]
    sent = []
    request = ModelRequest(model=made.model, messages=messages, state={})
    made.wrap_model_call(request, lambda request: sent.extend(request.messages))
    assert [message.text for message in sent][::2] == ["Rule 1.", "3"]


def test_documented_example_runs():
    names = example("langchain")
    assert len(names["state"]["messages"]) == 6
    assert names["state"]["messages"][-1].text == "You are Lance."
