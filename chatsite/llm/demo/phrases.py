"""The sentences of the demo model, in English and Chinese."""

ENGLISH = {
    "hint": "I am the demo model: ask me later about what you tell me here.",
    "welcome": "Nice to meet you, {name}!",
    "noted": "Noted: “{text}”",
    "name": "Your name is {name} ({where}).",
    "said": "You said: “{text}” ({where}).",
    "answered": "I said: “{text}” ({where}).",
    "message": "message {n}",
    "summary": "the summary of messages {first}–{last}",
    "earlier": "an earlier message",
    "unknown": "I can't find that in what I was sent: {sent}.",
    "sent": "I was sent {sent}.",
    "unable": "I am the demo model and can only work with what this conversation "
    "says. For this one I was sent {sent}. A real model answers here as soon as the "
    "site has an OPENAI_API_KEY or an OPENAI_BASE_URL.",
    "messages": "{n} messages",
    "one_message": "1 message",
    "version": "the summary of messages {first}–{last} (version {version})",
    "and": " and ",
    "not_found": "I searched the whole conversation for “{query}” and found nothing.",
    "result": "{tool} says: “{text}”",
    "space": " ",
}
CHINESE = {
    "hint": "我是演示模型：之后可以问我你在这里说过的事。",
    "welcome": "很高兴认识你，{name}！",
    "noted": "记下了：“{text}”",
    "name": "你叫{name}（{where}）。",
    "said": "你说过：“{text}”（{where}）。",
    "answered": "我说过：“{text}”（{where}）。",
    "message": "第 {n} 条消息",
    "summary": "第 {first}–{last} 条消息的摘要",
    "earlier": "之前的消息",
    "unknown": "在我收到的内容里找不到：{sent}。",
    "sent": "我收到的是：{sent}。",
    "unable": "我是演示模型，只能使用这段对话里的内容。这次我收到的是：{sent}。"
    "网站设置 OPENAI_API_KEY 或 OPENAI_BASE_URL 之后，就由真正的模型来回答。",
    "messages": "{n} 条消息",
    "one_message": "1 条消息",
    "version": "第 {first}–{last} 条消息的摘要（版本 {version}）",
    "and": "和",
    "not_found": "我在整个对话里搜索了“{query}”，没有找到。",
    "result": "{tool} 的结果：“{text}”",
    "space": "",
}
