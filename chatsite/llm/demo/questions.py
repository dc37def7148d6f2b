"""What the demo model understands: the patterns of questions, requests and courtesy."""

import re


def _pattern(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


# About the person.
NAME_QUESTION = _pattern(
    r"\bmy name\b|\bwho am i\b|\b(?:remember|know) me\b",
    r"我叫(?:什么|啥)|我的名字|我是谁|叫我什么|认识我|记得我",
)
ABOUT_ME = _pattern(
    r"\babout me\b|\bsummar(?:y|ise|ize)\b",
    r"what (?:did|have) i (?:tell|told|say|said)(?: you)?\W*$",
    r"关于我|总结|我(?:都)?(?:说|告诉)(?:过|了)?(?:你)?(?:些)?什么",
)
VALUE_QUESTION = _pattern(
    r"\b(?:what|which|who|when|where|how)(?:'s|’s| is| are| was| were|s)? my "
    r"(?P<key>[^?.!,]{1,60})",
    r"我的?(?P<zh>[\u4e00-\u9fff\w]{1,12}?)(?:是|叫)(?:什么|谁|哪|多少|几)",
)
HABIT_QUESTION = _pattern(
    r"\b(?:what|which|where|who)\b[^?.!]{0,40}? (?:do|did|would) i (?:really |also )?"
    r"(?P<verb>(?a:like|love|hate|prefer|enjoy|want|need|live|work|have))\b",
    r"我(?P<zh>喜欢|爱|讨厌|想要|住|想|有)(?:在)?(?:什么|啥|哪|谁|多少|几)",
)
# What people say when they speak of these things.
HABITS = {
    "like": "like|love|enjoy|prefer|adore|喜欢|爱",
    "hate": "hate|dislike|can't stand|don't like|讨厌|不喜欢",
    "want": "want|would like|need|想|想要|需要",
    "live": "live|moved to|based in|from|住|来自",
    "work": "work|job|employed|工作|上班",
    "have": "have|own|有",
}
SAME_HABIT = {
    "love": "like",
    "enjoy": "like",
    "prefer": "like",
    "need": "want",
    "喜欢": "like",
    "爱": "like",
    "讨厌": "hate",
    "想要": "want",
    "想": "want",
    "住": "live",
    "有": "have",
}
# "What is my job?" asks for what was said about work.
KEY_HABITS = {
    "job": "work",
    "occupation": "work",
    "profession": "work",
    "工作": "work",
    "职业": "work",
    "hobby": "like",
    "爱好": "like",
    "home": "live",
    "city": "live",
}

# About the conversation and the model.
ABOUT_MODEL = _pattern(
    r"\b(?:who|what|how) are you\b|\bwhat can you do\b",
    r"你是谁|你是什么|你能做什么|你会什么|你好吗|你怎么样",
)
ABOUT_VIEW = _pattern(
    r"\bhow many messages\b|\bwhat (?:do|can) you see\b|\bwhat were you sent\b",
    r"你(?:能)?(?:看到|收到)了?(?:什么|多少|哪些)|多少条消息",
)
FIRST_THING = _pattern(
    r"\bfirst (?:thing|message|question|sentence)\b", "第一(?:条|句|个)"
)
LAST_THING = _pattern(
    r"\b(?:last|previous) (?:thing|message|question|sentence)\b",
    r"\bjust (?:say|said|tell|told|ask|asked)\b",
    "刚才|刚刚|上一(?:条|句|个)",
)
NUMBER_QUESTION = _pattern(
    r"\b(?:when|number|code|date|how (?:many|much|old|long)|what time)\b",
    r"几|多少|什么时候|号码|密码|日期|多大",
)

# Between two questions in one sentence.
AND_QUESTION = _pattern(r",?\s+and\s+(?=(?:what|who|where|when|which|how)\b)")

# No question at all.
REQUEST = _pattern(
    r"^\W*(?:please |could you |can you )?(?:write|explain|give|list|show|describe"
    r"|translate|make|create|help|suggest|recommend|calculate|draw"
    r"|tell me (?:a|an|about))\b",
    r"^\W*请?(?:帮我|写|解释|翻译|列出|推荐|计算)",
)
REMEMBER = _pattern(
    r"^\W*(?:please )?remember(?: that|:)? ", r"^\W*请?记(?:住|得|一下)[，：:, ]*"
)
GREETING = _pattern(
    r"^\W*(?:hi|hello|hey|good (?:morning|evening|afternoon))\b",
    r"^\W*(?:你好|您好|嗨|早上好)",
)
THANKS = _pattern(r"^\W*(?:thanks|thank you|谢谢|多谢)")
BYE = _pattern(r"^\W*(?:bye|goodbye|see you|再见|拜拜)")
