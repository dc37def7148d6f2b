"""A streamed conversation with the tool `weather`, through one client library.

Usage: python sdk_clients.py NAME. The library reads its address and key from its usual
environment variables.
"""

import asyncio
import json
import os
import sys

ASK = os.environ["ASK"]
MODEL = "gpt-5.4-mini"
CLAUDE = "claude-sonnet-5-5"
ABOUT = "The weather at a place."
SCHEMA = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
}
FUNCTION = {"name": "weather", "description": ABOUT, "parameters": SCHEMA}


def weather(place: str) -> str:
    """The weather at a place."""
    return f"{place}-{6 * 7} degrees"


def run_openai_chat() -> str:
    import openai

    client = openai.OpenAI()
    said: list = [{"role": "user", "content": ASK}]
    tools: list = [{"type": "function", "function": FUNCTION}]
    while True:
        asked = {"model": MODEL, "messages": said, "tools": tools}
        with client.chat.completions.stream(**asked) as stream:
            message = stream.get_final_completion().choices[0].message
        said.append(message.to_dict())
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            text = weather(**json.loads(call.function.arguments))
            said.append({"role": "tool", "tool_call_id": call.id, "content": text})


def run_openai_responses() -> str:
    import openai

    client = openai.OpenAI()
    given: object = ASK
    more: dict = {}
    while True:
        asked = {
            "model": MODEL,
            "input": given,
            "tools": [{"type": "function", **FUNCTION}],
        }
        with client.responses.stream(**asked, **more) as stream:
            response = stream.get_final_response()
        calls = [each for each in response.output if each.type == "function_call"]
        if not calls:
            return response.output_text
        more = {"previous_response_id": response.id}
        given = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": weather(**json.loads(call.arguments)),
            }
            for call in calls
        ]


def run_openai_agents() -> str:
    import agents

    agents.set_tracing_disabled(True)
    agent = agents.Agent(
        "Windowpane", model=MODEL, tools=[agents.function_tool(weather)]
    )

    async def run() -> str:
        running = agents.Runner.run_streamed(agent, ASK)
        async for _ in running.stream_events():
            pass
        return running.final_output

    return asyncio.run(run())


def run_anthropic() -> str:
    import anthropic

    client = anthropic.Anthropic()
    said: list = [{"role": "user", "content": ASK}]
    tools: list = [{"name": "weather", "description": ABOUT, "input_schema": SCHEMA}]
    while True:
        asked = {"model": CLAUDE, "max_tokens": 500, "messages": said, "tools": tools}
        with client.messages.stream(**asked) as stream:
            message = stream.get_final_message()
        said.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return message.content[0].text
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": weather(**call.input),
            }
            for call in calls
        ]
        said.append({"role": "user", "content": results})


def run_langchain(model) -> str:
    from langchain_core.messages import HumanMessage, ToolMessage

    said: list = [HumanMessage(ASK)]
    bound = model.bind_tools([weather])
    while True:
        reply = None
        for chunk in bound.stream(said):
            reply = chunk if reply is None else reply + chunk
        said.append(reply)
        if not reply.tool_calls:
            return reply.text
        for call in reply.tool_calls:
            text = weather(**call["args"])
            said.append(ToolMessage(text, tool_call_id=call["id"]))


def run_langchain_openai() -> str:
    from langchain_openai import ChatOpenAI

    return run_langchain(ChatOpenAI(model=MODEL))


def run_langchain_responses() -> str:
    from langchain_openai import ChatOpenAI

    return run_langchain(ChatOpenAI(model=MODEL, use_responses_api=True))


def run_langchain_anthropic() -> str:
    from langchain_anthropic import ChatAnthropic

    return run_langchain(ChatAnthropic(model=CLAUDE, max_tokens=500))


def run_litellm(model: str = f"openai/{MODEL}") -> str:
    import litellm

    said: list = [{"role": "user", "content": ASK}]
    tools: list = [{"type": "function", "function": FUNCTION}]
    while True:
        asked = {"model": model, "messages": said, "tools": tools}
        chunks = list(litellm.completion(**asked, stream=True))
        message = litellm.stream_chunk_builder(chunks, said).choices[0].message
        said.append(message)
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            text = weather(**json.loads(call.function.arguments))
            said.append({"role": "tool", "tool_call_id": call.id, "content": text})


def run_litellm_anthropic() -> str:
    return run_litellm(f"anthropic/{CLAUDE}")


if __name__ == "__main__":
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    found = globals()[f"run_{sys.argv[1].replace('-', '_')}"]()
    sys.stdout.write(f"{found}\n")
