"""The requests of a conversation to a model: the next one, and past ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils.timezone import now
from django.utils.translation import gettext as _
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from chatsite import plugins
from chatsite.features.tools import registry
from chatsite.llm import dialects, providers, streaming
from chatsite.llm.errors import LLMError
from chatsite.protocol.errors import CommandError
from memory import context
from memory.engine import attachments
from memory.engine.attachments import Attachment
from memory.engine.blank import is_blank
from memory.engine.compose import Shape
from memory.images import image_source
from memory.models import Conversation, Message, ModelCall
from memory.sql import prepared_rows
from memory.view import rebuilding
from memory.view.variation import Variation

from . import variations
from .models import Turn


def model_of(conversation: Conversation) -> str:
    return conversation.model or providers.default_model()


def name_to_store(model: str) -> str:
    """Return the name to store for model_of(); "" for the site's own model.

    A conversation without a name follows the setting.
    """
    return "" if model == providers.default_model() else model


def temperature_of(conversation: Conversation) -> float | None:
    """Return the temperature of a conversation's replies; None = the provider's own."""
    own = conversation.temperature
    return settings.CHAT_TEMPERATURE if own is None else own


def limit_of(model: str) -> int:
    """Return the tokens that a request may have; the reply still fits the window."""
    return context.request_limit(providers.context_window(model))


def shape_of(model: str, dialect: dialects.Dialect | None = None) -> Shape:
    """Return the form of messages to a model, as far as its provider is known."""
    dialect = dialect or dialects.find_dialect(model)
    return Shape(dialect.system_role, dialect.joined)


def form_of(model: str, dialect: dialects.Dialect | None = None) -> dict[str, Any]:
    """Return the arguments of composing a request that depend on the model.

    The limit in tokens is not among them.
    """
    dialect = dialect or dialects.find_dialect(model)
    shape = replace(
        shape_of(model, dialect),
        calls=dialect.calls,
        provider=providers.find_host(model) if dialect.has_extras else "",
        wanted=dialect.wanted,
    )
    return {"model": model, "shape": shape, "with_images": dialect.has_images}


async def complete_request(
    model: str, messages: Sequence[BaseMessage], **options: Any
) -> AIMessage:
    """Fetch a reply in the form that the provider takes.

    That form is response_metadata["shape"] of the reply. Raises LLMError.
    """
    dialect, refused = dialects.find_dialect(model), 0
    while True:
        shape = shape_of(model, dialect)
        try:
            reply = await streaming.fetch_reply(
                model, shape.apply_to(messages), dialect=dialect, **options
            )
        except LLMError as error:
            if error.instead is None:
                error.dialect = dialect
                raise
            dialect, refused = error.instead, refused + 1
            continue
        reply.response_metadata["shape"] = shape
        reply.response_metadata["attempts"] += refused
        return reply


def check_fits(conversation: Conversation, message: Message) -> None:
    """Refuse a message that its model could never take, even with nothing beside it.

    Raises CommandError; the limit is named there.
    """
    room = providers.context_window(model_of(conversation))
    alone = [
        SystemMessage(context.find_system_prompt(conversation)),
        message.to_langchain(),
    ]
    image_source.note_images(conversation, alone[1:], message)
    tokens = context.conversation_counter(conversation)(alone)
    if tokens > room:
        text = _(
            "The message has about %(tokens)s tokens, with the instructions to the "
            "model; the model takes %(room)s. Shorten it or send it in parts."
        )
        values = {"tokens": f"{tokens:,}", "room": f"{room:,}"}
        raise CommandError("too_long", text % values)


def room_for_files(conversation: Conversation) -> int:
    """Return the tokens that all attachments of a message may have together.

    ATTACHMENT_TOKENS, and at most half of what the model takes, so that the rest fits
    beside them.
    """
    return min(settings.ATTACHMENT_TOKENS, limit_of(model_of(conversation)) // 2)


def next_turn(
    conversation: Conversation, draft: str = "", files: Sequence[Attachment] = ()
) -> context.RequestContext:
    """Return the request that would be sent now.

    It is the context of the waiting message, with what its turn has done so far, else
    of the draft with its files, else the view so far. For a conversation that a client
    writes: the request that the client sent last.
    """
    for data in plugins.app_data:
        if data.find_sent_last and (built := data.find_sent_last(conversation)):
            return built
    turn = next(iter(_select_waiting(conversation=conversation.pk)), None)
    newest = turn.user_message if turn else _make_unsent(conversation, draft, files)
    varied = variations.find_next(conversation, turn)
    return compose_request(
        conversation,
        newest,
        (varied and varied.model) or model_of(conversation),
        varied=varied,
        tools=registry.offer_now(conversation),
        steps=context.read_steps(newest) if turn and turn.may_have_rows else (),
    )


def compose_request(
    conversation: Conversation,
    newest: Message | None,
    model: str,
    *,
    varied: Variation | None,
    tools: dialects.Tools,
    steps: Sequence[Message] = (),
    limit: int | None = None,
    dialect: dialects.Dialect | None = None,
) -> context.RequestContext:
    """Build the request to answer `newest`, whole: with its tools and options."""
    dialect = dialect or dialects.find_dialect(model)
    tools = tools.fit_to(dialect)
    form = form_of(model, dialect) | {"tool_tokens": tools.tokens}
    form["limit"] = max(1, (limit or limit_of(model)) - tools.tokens)
    built = context.build_request_context(
        conversation, newest=newest, steps=steps, **form
    )
    if varied:
        usual = replace(built, tools=tools.to_options().get("tools", ()))
        if "tools" in varied.off:
            tools = dialects.Tools()
            form["tool_tokens"] = 0
        built = variations.vary_built(built, conversation, varied, newest, **form)
        built = replace(built, usual=usual)
    return with_options(built, conversation, model, tools, varied)


def compose_now(
    conversation: Conversation,
    reply: Message,
    question: Message,
    model: str,
    varied: Variation,
    dialect: dialects.Dialect,
) -> context.RequestContext:
    """Build the request for the question of a reply, with what the model reads now.

    It has the steps that the reply was written after.
    """
    steps = [each for each in context.read_steps(question) if each.seq < reply.seq]
    tools = registry.offer_now(conversation)
    form = {"varied": varied, "tools": tools, "steps": steps, "dialect": dialect}
    return compose_request(conversation, question, model, **form)


def with_options(
    built: context.RequestContext,
    conversation: Conversation,
    model: str,
    tools: dialects.Tools,
    varied: Variation | None = None,
) -> context.RequestContext:
    """Return the request with its tools and what else it says besides messages."""
    temperature = varied.temperature if varied else None
    if temperature is None:
        temperature = temperature_of(conversation)
    options = {
        **providers.cache_options(model, str(conversation.uuid)),
        **providers.sampling_options(model, temperature),
        **tools.to_options(),
    }
    return replace(
        built,
        refs=built.refs | tools.to_refs(),
        texts=built.texts | tools.to_texts(),
        tools=options.get("tools", ()),
        model=model,
        options=options,
    )


def make_body(built: context.RequestContext) -> dict[str, Any]:
    """Return the body that would leave now for a request of compose_request().

    Raises LookupError if the site does not have its model any more.
    """
    options = dialects.find_dialect(built.model).to_options(built.options)
    body = providers.build(built.model).make_body(built.messages, **options)
    return body | body.pop("extra_body", {})


@prepared_rows()
def _select_waiting(conversation: Any) -> QuerySet[Turn]:
    rows = Turn.objects.filter(conversation=conversation, state__one_of=Turn.UNFINISHED)
    return rows.select_related("user_message").order_by("id")[:1]


def _make_unsent(
    conversation: Conversation, draft: str, files: Sequence[Attachment]
) -> Message | None:
    if is_blank(draft) and not files:
        return None
    text, places = attachments.join_attachments(draft, files)
    seq, room = conversation.next_seq, room_for_files(conversation)
    return Message(
        conversation=conversation,
        seq=seq,
        role=Message.Role.USER,
        text=text,
        sent_text=attachments.shorten_attachments(text, places, room=room, seq=seq),
        attachments=places,
        created_at=now(),
    )


def has_request() -> Exists:
    """Return a filter for rows of messages whose reply has a known request.

    A client's request is not known while `endpoint` is off.
    """
    return Exists(rebuilding.select_known(_of_message()))


def with_model(rows: QuerySet[Any], message: str = "pk") -> QuerySet[Any]:
    """Annotate rows with the `model` and `provider` that a reply was requested from.

    `rows` are messages, or rows that refer to them as `message`. None where no request
    is known.
    """
    latest = _of_message(message).order_by("-id")
    return rows.annotate(
        model=Subquery(latest.values("model")[:1]),
        provider=Subquery(latest.values("provider")[:1]),
    )


def _of_message(message: str = "pk") -> QuerySet[ModelCall]:
    return ModelCall.objects.filter(
        purpose=ModelCall.Purpose.REPLY, message=OuterRef(message)
    )


def refuse_other_writers(conversation: Conversation) -> str:
    """Refuse the conversation of another client, also while `endpoint` is off."""
    kind, _colon, client = (conversation.imported_from or "").partition(":")
    if kind != "client":
        return ""
    text = _("%(client)s writes this conversation. To go on here, branch it.")
    return text % {"client": client}


def find_left_out(conversation: Conversation) -> Sequence[str]:
    """Return the tools that the last request to the conversation's model went without.

    Its provider does not take them.
    """
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    asked = calls.filter(model=model_of(conversation)).order_by("-id")
    refs = asked.values_list("refs", flat=True).first() or {}
    return refs.get("tools_left_out", ())


def reply_call(conversation: Conversation, seq: int) -> ModelCall | None:
    """Return the request that reply `seq` came from, None where it is not known."""
    calls = conversation.model_calls.filter(
        purpose=ModelCall.Purpose.REPLY, message__seq=seq
    )
    return rebuilding.select_known(calls).order_by("-id").first()
