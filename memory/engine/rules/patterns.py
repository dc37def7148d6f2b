"""The words by which detection.py recognises a rule, in English and Chinese.

Each pattern is tried on one sentence, so the length of a sentence bounds all of them.
"""

import re

from ..search.terms import extract_terms
from .grammar import compile_any

START = (
    r"^(?:ok(?:ay)?|and|also|but|so|well|thanks|great|hey|hi|one more thing)?[,:]?\s*+"
)
PLEASE = r"(?:please|kindly|remember|important|note)?[,:]?\s*+(?:that you |to )?"
# The elements and forms of replies.
FORM = (
    r"(?:emojis?|emoticons|bullet points?|bullets|lists?|tables?|headings?|headers|"
    r"markdown|jargon|slang|abbreviations|acronyms|contractions|comments|footnotes|"
    r"exclamation marks?|disclaimers|introductions?|preambles?|apologies|spoilers|"
    r"flattery|filler|passive voice|small talk|marketing language|bold|latex|html)"
)
REPLIES = (
    r"(?:answers?|repl(?:y|ies)|responses?|explanations?|messages|summaries|feedback|"
    r"e-?mails|suggestions|texts?|code|examples|everything|documents?|charts)"
)
LANGUAGES = (
    r"(?:(?:british |american |simple |plain )?english|german|french|spanish|italian|"
    r"chinese|mandarin|japanese|korean|portuguese|dutch|russian|polish|plain text|"
    r"json|yaml|xml|markdown|prose|bullet points)"
)
FROM_NOW = (
    r"(?:from (?:now|here|today|this point) (?:on(?:wards?)?|out)|going forward|"
    r"henceforth|in (?:the )?future (?:answers|repl|responses|messages)|"
    r"for the rest of (?:this|our) (?:chat|conversation)|throughout (?:this|our) "
    r"(?:chat|conversation)|(?:in|at the end of|at the start of) (?:all|every|each) "
    r"(?:of )?(?:your )?(?:answer|repl|response|message)|in everything you write)"
)
VERBS = (
    r"(?:add|address|answer|ask|assume|avoid|begin|call|check|cite|compare|consider|"
    r"continue|convert|describe|do(?! i\b)|don['’]t|double-check|end|ensure|explain|"
    r"fact-check|first|focus|follow|format|give|highlight|include|keep|let|limit|list|"
    r"make|mention|name|never|note|number|offer|only|point|prioriti[sz]e|provide|put|"
    r"quote|recommend|refer|remind|reply|respond|show|speak|spell|start|state|stick|"
    r"suggest|summari[sz]e|talk|tell|translate|treat|use|warn|write|act|always)"
)

INSTRUCTIONS = compile_any(
    # "Always …", "never …" with any verb; not "always a pleasure", "never mind".
    START + PLEASE + r"always (?!a\b|an\b|the\b|been\b|on\b|happy|glad|nice|here|"
    r"there|good|great|\w+ing\b)[a-z]",
    START + PLEASE + r"(?:do(?:n['’]t| not) ever|never|not once) "
    r"(?!mind\b|heard|been|had|have|has|was|knew|saw|seen|thought|said|again\b|"
    r"before|quit|give up|let\b|lose|forget|in\b|\w+ed\b)[a-z]",
    # For all that follows.
    rf"{VERBS}\b.*\b{FROM_NOW}",
    r"^(?:when(?:ever)?|if|every time|each time|any ?time|once) (?:I|you) (?:ask|say|"
    r"paste|send|share|upload|mention|quote|write|finish|want|give|type|request|cite|"
    rf"suggest|post|talk|answer|recommend|use|explain)\b.*?[,:]? (?:then )?{VERBS}\b",
    # What the model has to do, or the user wants.
    r"\byou (?:must|should|have to|need to|are to|may)(?: not| always| never| only) "
    + VERBS,
    r"(?<!\bI )\b(?:make sure|be sure|remember|it['’]s important)(?: to| that)?"
    r"(?: you)?(?: to)? (?:always|never)\b",
    r"\b(?:can|could|would|will) you (?:please )?(?:always|never|stop|only(?! be))\b",
    START + r"as a rule,? " + VERBS,
    # The form of replies.
    r"\bin (?:all|every|each)(?: of)? (?:your |the )?" + REPLIES,
    START + PLEASE + r"(?:please )?(?:only )?(?:answer|reply|respond|speak|talk|write "
    rf"everything)(?: to me)?(?: only| always)? (?:only )?(?:in|with) {LANGUAGES}\b",
    START + PLEASE + r"(?:let['’]s )?(?:use|stick to|give|write|format)\b.*\b(?:metric|"
    r"imperial|si units|celsius|fahrenheit|24-hour|12-hour|iso dates?|oxford comma|"
    r"(?:british|american) (?:spelling|english)|dates (?:like|as|in)|all code)\b",
    START + PLEASE + r"(?:please )?do all\b",
    START + PLEASE + r"treat (?:every|all|each)\b",
    START + PLEASE + r"(?:only|just) (?:suggest|recommend|use|give|answer|show)\b",
    START
    + r"(?:anything|everything|whatever) (?:you|I) (?:write|send|say)\b.*\b(?:has "
    r"to|must|should|is)\b",
    START + r"my budget\b.*\b(?:must|never|at most)\b",
    START + r"no (?:more )?" + FORM + r"\b",
    # Chinese.
    r"(?:以后|今后|往后|从现在(?:起|开始)|从今(?:以后|往后)|接下来|从这里开始)"
    r"[^。]{0,14}?(?:都|请|一律|不要|别|只|用|统一|每|先|少|编号|直接)",
    r"(?:每次|每当|每个回答|每写完|每条回复|凡是)[^。]*(?:都(?![会有是很能骗忘没被回]|"
    r"出现|在)|先|请|务必|给|列)",
    r"^(?:请|记住|千万|绝对|非常重要)?[，,：: ]*(?:你)?(?:千万|绝对|永远)?(?:不要|别|"
    r"禁止|不许|切勿|绝不能)(?:再|用|使用|加|说|出现|给我|推荐|叫|写|默认|直接|剧透|"
    r"跟我|透露|表格|表情|项目|在|提(?!了))",
    r"(?:请使用|请保持)(?:简体|繁体)",
    r"只(?:用|推荐|给|使用)[^。]*(?:回答|格式|餐厅|提示|的)",
    r"(?:^|[，,：:])(?:你的?|所有|你?解释|回答|回复|日期|温度|价格|时间|文件里|邮件|"
    r"计算)[^。，]{0,8}(?:请|都(?![对丢是有会能很没])|要(?!是|知道)|一律|统一|不要|尽量)"
    r"[^。]*(?:简短|简洁|格式|超过|用|写|按|称|保持|摄氏)?",
    r"(?:统一|一律|一定要先|绝对不能|绝不能)",
    r"^原则上",
    r"我(?:说|让你|问到|上传)[^。]*(?:的时候|时)[^。]*(?:你就?|给我|总是|先)",
)

PREFERENCES = compile_any(
    r"\bI(?:['’]d| would| do)?(?:\s(?:really|strongly|generally|usually|much|also|still"
    r"|always|personally|definitely))*\sprefer(?!ences?\b| not to say| something)\b",
    r"\bmy (?:(?:strong|personal|general) )?preference(?: is|s are| for)\b",
    r"\bI['’]d (?:much )?rather (?!not say|wait|stay|go\b|be\b|eat|die|sleep|do\b|have"
    r"|take|walk)",
    # A choice shows a preference. A decision or a priority is about the matter at hand.
    r"\bI(?:['’]ve| have)? (?:chosen|opted|chose) to (?:keep|use|do|update|stick|go|"
    r"work|write|avoid|focus|prioriti[sz]e)\b",
    r"\bI(?:['’]ve| have)? (?:opted|chosen) for\b",
    r"\b(?:a|my) (?:\w+ )?preference for\b",
    r"\bI (?:really |absolutely )?(?:hate|dislike|can['’]t stand|loathe) (?!when|not|"
    r"being|that|it|this|to\b|you\b|u\b|him|her|them|my\b|\w+days?\b)\w",
    r"\bI like (?:my|all|your|to have|short|long)\b.*",
    r"\bI (?:tend|like) to (?:keep|use|work|avoid|write)\b",
    r"(?<!\bwhat )\b(?:works|suits) (?:best for )?me(?: best)?\b",
    r"^(?!.*\bstarted\b).*\bI\b.*\brather than (?!just)\w+ing\b",
    r"(?:^|[，,、；])(?:所以|但是?|而且|比起[^，。]{1,20}[，,])?(?:我)?(?:还是|特别|"
    r"一般|通常|真的|比较|更)*(?:更喜欢|偏好|偏爱|倾向于?|习惯(?!了)|宁[愿可](?![死去走"
    r"饿睡])|(?:讨厌|受不了)(?![你他她它这那死周]|星期))",
    r"我(?:还是|特别|非常|最)喜欢[^。]*(?:的|用)(?:配色|风格|方式|格式|写法|语气)",
    r"我(?:选择|决定)(?:了)?(?:全部|一直|都|只)",
)

CONSTRAINTS = compile_any(
    r"\bI(?:['’]m| am)(?: \w+)? allergic to (?!\w+days?\b|you\b|work|people|exercise|"
    r"homework|small talk|nonsense|drama)",
    r"\bI have (?:a |an )?(?:[a-z]+ ){0,3}(?:allergy|allergies|intolerance|diabetes|"
    r"celiac|coeliac|asthma|epilepsy)\b",
    r"\bI(?:['’]m| am) (?:an? )?(?:strict |type [12] )?(?:vegan|vegetarian|pescatarian|"
    r"celiac|coeliac|diabetic|dyslexic|deaf|pregnant|muslim|"
    r"(?:lactose|gluten)[- ]intolerant|colou?r[- ]?blind|hard of hearing|epileptic)\b",
    r"\bI (?:can['’]t|cannot|do not|don['’]t|never|must not|mustn['’]t|may not) "
    r"(?:eat|drink|tolerate|fly|drive|travel on|work on)\b(?! another| it\b| that\b)",
    r"\bI (?:use|am in) a wheelchair\b",
    r"\bI(?: only)? (?:keep|eat) (?:kosher|halal)\b",
    r"\bI take (?:\w+ ){0,2}(?:thinners|medication|insulin|antidepressants)\b",
    r"我(?:[^。，]{0,4})?对(?!周|星期|[上加]班|工作|早起|作业|[你他她])[^。，]{1,12}过"
    r"敏",
    r"我(?:有|患有)[^。，]{0,8}(?:过敏|糖尿病|高血压|哮喘|癫痫)",
    r"我(?:是|吃)(?:素|全素|素食(?:者|主义者)?|纯素|色盲|穆斯林|回民|聋人|盲人|"
    r"孕妇)(?!的)",
    r"我(?:乳糖|麸质)不耐受?",
    r"我(?:从来?|都|一般)?(?:不能?|不可以)(?:吃|喝|碰|坐飞机|开车)(?!下|完|了|早|午|"
    r"晚|夜宵)",
    r"我[^。，]{0,10}不能(?:出行|工作|旅行)",
    r"我坐轮椅",
    r"我(?:在|正在)(?:吃|服)[^。，]{1,8}药",
    r"我只吃清真",
)

QUESTION = re.compile(
    r"[?？]|吗\s*$|^(?:what|why|how|who|where|which|when (?:do|does|is)|do you|does|did"
    r"|is it|are there|should I|shall)\b",
    re.IGNORECASE,
)
# Questions that are requests.
POLITE = re.compile(
    r"\b(?:can|could|would|will) you\b.*\b(?:always|never|stop|only|from now on)\b|"
    r"能不能(?:每次|总是|以后|都)|请[^。]*[，,](?:可以|好)吗",
    re.IGNORECASE,
)

# Words that end a rule, and words that may: "no need to" can be a new one, too.
ENDS = compile_any(
    START
    + r"(?:please )?(?:forget|ignore|drop|disregard|scrap|cancel) (?:about )?(?:the|"
    r"my|what I|that|those|all)\b(?! (?:ma['’]am|mr|mrs|sir|intro|small|pleasantr))",
    r"\b(?:you (?:can|may)|feel free to)\b.*\bagain\b|\bno longer(?! than)\b",
    r"(?:忘掉|(?<!差点)(?<!别)忘了|忽略|取消|作废)[^。]*|(?:不用|不必|不需要)再|"
    r"可以(?:再|重新)?[^。，]{1,12}了",
)
RELEASES = compile_any(
    r"\b(?:don['’]t need to|needn['’]t|no need(?: to)?|(?:is|are)n['’]t (?:needed|"
    r"necessary)|not necessary)\b|(?:不用|不必|不需要)(?!客气|谢|担心|急|怕)",
)
# A new wish beside it.
INSTEAD = re.compile(r"\b(?:always|never|instead)\b|改用|请用|而是", re.IGNORECASE)
# Words that only say that something is wanted or not.
NEGATIONS = frozenset(
    extract_terms(
        "always never stop use please avoid forget ignore drop again no longer answer "
        "reply 不要 以后 总是 请不 要用 不用 再用 都用 使用 请用"
    )
)
CONDITION = re.compile(
    r"\b(?:when|whenever|if|about|every time|each time)\b|时候|问到|每当|凡是",
    re.IGNORECASE,
)
# Settings for which the latest rule counts.
SLOTS = {
    "language": re.compile(
        r"\b(?:answer|reply|respond|speak|talk|write)\w*\b.*\bin (?:british |american |"
        r"simple )?(?:english|german|french|spanish|italian|chinese|japanese|korean|"
        r"portuguese|dutch|russian|polish)\b|用(?:中文|英文|英语|简体|繁体|德语|日语|"
        r"法语)[^。]*(?:回答|回复|交流)",
        re.IGNORECASE,
    ),
    "name": re.compile(r"\b(?:call|address) me\b|(?:叫|称呼)我", re.IGNORECASE),
    "length": re.compile(
        r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?)\b.*\b(?:short|brief|"
        r"long|longer|detailed|concise|words|sentences)\b|(?:回答|回复|解释)[^。]*"
        r"(?:简短|简洁|详细|不超过|字|句话)",
        re.IGNORECASE,
    ),
    "units": re.compile(
        r"\b(?:metric|imperial|si) (?:units?|system)\b|公制|英制|国际单位",
        re.IGNORECASE,
    ),
    "temperature": re.compile(r"\b(?:celsius|fahrenheit)\b|摄氏|华氏", re.IGNORECASE),
    "dates": re.compile(
        r"\b(?:write|format|use|give)\b.*\bdates?\b|日期[^。]*(?:写|格式)",
        re.IGNORECASE,
    ),
    "clock": re.compile(r"\b(?:24|12)-hour\b|(?:24|12)小时制", re.IGNORECASE),
    "spelling": re.compile(
        r"\b(?:british|american) (?:spelling|english)\b", re.IGNORECASE
    ),
}
