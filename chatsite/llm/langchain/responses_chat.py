"""OpenAI's Responses API, for its models that answer there alone or better.

A request leaves as items, and the events of its answer are read as the chunks of chat
completions, so that all else is the same for both.
"""

from typing import Any

from chatsite.llm.openai_chat import ObjectStream, OpenAIChat
from memory.engine.tools.response_items import INCLUDED, convert_body

# OpenAI keeps nothing: the next request has what it gave, also what it encrypted.
FIXED = {"store": False, **INCLUDED}
# Fields of chat completions that this API does not have.
UNKNOWN = ("stream_options", "seed")
TEXTS = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}
ENDS = ("response.completed", "response.incomplete", "response.failed")
REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
# The fields of an item of reasoning that go back.
SENT_BACK = ("id", "summary", "encrypted_content", "type")


class ResponsesStream(ObjectStream):
    """The events of a response, as chunks of chat completions."""

    def read_event(self, value: dict[str, Any]) -> dict[str, Any]:
        kind, place = value.get("type"), value.get("output_index")
        if kind in TEXTS:
            return {"choices": [{"delta": {TEXTS[kind]: value.get("delta")}}]}
        match kind:
            case "error":
                return {"error": {"message": value.get("message"), **value}}
            case "response.reasoning_summary_part.added":
                return _make_chunk(
                    {"reasoning": "\n\n"} if value["summary_index"] else {}
                )
            case "response.output_text.annotation.added":
                return _make_chunk({"annotations": [value["annotation"]]})
            case "response.output_item.added":
                return _make_chunk(_begin_call(value["item"], place))
            case "response.function_call_arguments.delta":
                function = {"arguments": value["delta"]}
                call = {"index": place, "function": function}
                return _make_chunk({"tool_calls": [call]})
            case "response.output_item.done":
                return _make_chunk(_keep_reasoning(value["item"]))
        return _make_last_chunk(value["response"]) if kind in ENDS else {}


class ResponsesChat(OpenAIChat):
    """A model of OpenAI that is asked through the Responses API."""

    api_path = "/responses"
    events = ResponsesStream

    def _get_request_payload(self, *args: Any, **options: Any) -> dict[str, Any]:
        payload = super()._get_request_payload(*args, **options)
        payload |= payload.pop("extra_body", {})
        for name in UNKNOWN:
            payload.pop(name, None)
        if schema := payload.pop("response_format", None):
            payload["text"] = {
                "format": {"type": "json_schema", **schema["json_schema"]}
            }
        caps = [payload.pop(n, 0) for n in ("max_tokens", "max_completion_tokens")]
        if any(caps):
            payload["max_output_tokens"] = max(caps)
        return convert_body(payload) | FIXED


def _make_chunk(delta: dict[str, Any]) -> dict[str, Any]:
    # As every first chunk has: a delta with one field is taken for a word alone.
    return {"choices": [{"delta": {"role": "assistant", **delta}}]} if delta else {}


def _begin_call(item: dict[str, Any], place: Any) -> dict[str, Any]:
    if item.get("type") != "function_call":
        return {}
    function = {"name": item.get("name")}
    call = {"index": place, "id": item.get("call_id"), "function": function}
    return {"tool_calls": [call]}


def _keep_reasoning(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type") != "reasoning" or not item.get("encrypted_content"):
        return {}
    # In the order of langchain-openai.
    return {"reasoning_details": [{n: item[n] for n in SENT_BACK if n in item}]}


def _make_last_chunk(response: dict[str, Any]) -> dict[str, Any]:
    if response.get("status") == "failed":
        return {"error": response.get("error") or {"message": "failed"}}
    items = response.get("output") or []
    has_calls = any(item.get("type") == "function_call" for item in items)
    why = (response.get("incomplete_details") or {}).get("reason")
    reason = REASONS.get(why, why) or ("tool_calls" if has_calls else "stop")
    usage = response.get("usage") or {}
    counts = {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
    }
    return {
        "choices": [{"delta": {}, "finish_reason": reason}],
        "usage": counts if usage else None,
    }
