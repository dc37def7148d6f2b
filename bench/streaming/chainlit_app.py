"""Chainlit's own example of a chat with OpenAI's client; nothing is stored."""

import chainlit as cl
from openai import AsyncOpenAI

client = AsyncOpenAI(api_key="none")


@cl.on_message
async def on_message(message: cl.Message) -> None:
    reply = cl.Message(content="")
    messages = [{"role": "user", "content": message.content}]
    stream = await client.chat.completions.create(
        model="bench", messages=messages, stream=True
    )
    async for part in stream:
        if token := part.choices[0].delta.content or "":
            await reply.stream_token(token)
    await reply.update()
