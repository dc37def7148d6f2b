"""How a person asks for something, in English and Chinese: what detection.py knows a
rule by when no fixed phrase of patterns.py is in it.

A wish has the form of one at the beginning of a clause: for something (`acts`), or
against it (`bans`). It is a rule if it lasts, or
speaks of what all replies look like. What others say (`told`) and what is wanted for
one answer (`once`) is none. Each pattern is tried on one sentence.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """Of one language.

    `stated`: wishes that have the form of a statement. `manner`: what replies are made
    of, which nobody bans for one of them. `style`: what is asked for once and for all.
    `requests`: the questions that ask
    for something to be done.
    """

    acts: re.Pattern[str]
    bans: re.Pattern[str]
    stated: re.Pattern[str]
    lasting: re.Pattern[str]
    manner: re.Pattern[str]
    style: re.Pattern[str]
    told: re.Pattern[str]
    once: re.Pattern[str]
    requests: re.Pattern[str]


def _compile_any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)


YOU = r"(?:you|u|ya|ye|y['’]all)"
# Where a clause begins, and what may stand before its verb.
FILLERS = (
    r"(?:please|pls|plz|pleas|kindly|just|ok|okay|oh|ah|ugh|hey|haha|lol|yo|so|and|"
    r"but|oh for (?:heaven|god)['’]?s sake|then|also|well|honestly|seriously|btw|"
    r"really|thanks|thx|remember|maybe|lah|mate|actually|now|instead|important|note|"
    r"in future|by the way|one thing)"
)
CLAUSE = (
    r"(?:^|[,:;—–(] ?|\b(?:but|so|because|just|from n[ow]{2} on) )"
    rf"(?:{FILLERS}[,:!]? ){{0,4}}+"
)
ADVERBS = (
    r"(?:(?:(?:be )?(?:so )?(?:kind|good) (?:enough|as) to|please|pls|also|just|only|"
    r"always|alwyas|allways|never|kindly|not|do|really|at no point|at all times|"
    r"mostly|try to|start to|be sure to|make sure to|make sure|at least|first|ever) )"
    r"{0,3}+"
)
VERBS = (
    r"(?:act(?= (?:as|like)\b)|add|address|adopt|allow|answer|apologi[sz]e|ask|assume|"
    r"attach|avoid|begin|be|bear in mind|break|call(?= (?:me|us|it|them)\b)|check|"
    r"cite|close|comment|consider|contradict|convert|correct|criticise|criticize|"
    r"define|disagree|distinguish|double[- ]?check|drop|end|ensure|exceed|explain|"
    r"fact-check|finish|flag|focus|format|gimme|give|go(?= (?:slow|easy|light|deep)"
    r"\w*)|greet|guess|highlight|include|indicate|interrupt|keep|label|leave out|"
    r"leave|limit|link|list|make|mark|mention|modify|name|note|number|observe|offer|"
    r"omit|open with|plan|point|praise|prefix|pretend|propose|provide|put|quote|rank|"
    r"recommend|refer|refuse|remember|remind|repeat|reply|respond|roast|round|say|"
    r"show|sign off|skip|slow down|speak|spell|start|state|stay away|stick|stop(?= "
    r"(?:me|being|when))|suggest|summari[sz]e|supply|swear|talk|tell|tone|touch|"
    r"translate|treat|type|use|warn|write)\b(?!['’])"
)
ANSWERS = (
    r"(?:answers?|anwsers?|repl(?:y|ies)|responses?|messages?|explanations?|posts?|"
    r"suggestions?|summar(?:y|ies)|feedback|comments?|drafts?|texts?|recipes?|code|"
    r"examples?|advice|tips?|ideas?|correspondence|charts?|paragraphs?|lists?|slides?|"
    r"claims?|images?|terms?|everything|anything|evrything|anythng|sentences?)"
)
TONGUES = (
    r"(?:english|german|french|spanish|italian|chinese|mandarin|cantonese|japanese|"
    r"korean|portuguese|dutch|russian|polish|arabic|hindi|turkish|swedish|greek|danish|"
    r"norwegian|finnish|czech|ukrainian|vietnamese|thai|welsh|irish|catalan|deutsch|"
    r"français|español|[中英日法德俄韩粤汉国][文语話话]|[繁简][体體])"
)
UNITS = (
    r"(?:metric|imperial|celsius|fahrenheit|kelvin|kilomet(?:er|re)s|miles|inches|feet|"
    r"pounds|ounces|cups|kilos?|grams?|euros?|dollars?|francs?|rmb|yuan|yen|rupees|"
    r"(?:my )?time ?zone|utc|iso|24-?h(?:ours?|r)?|12-?hour|am/pm)"
)
TONE = (
    r"(?:formal|informal|blunt|direct|brief|concise|casual|chatty|honest|polite|nice|"
    r"critical|strict|terse|wordy|verbose|frank|harsh|gentle|preachy|simple|plain|"
    r"short|straight|open|rude|sarcastic|cheerful|kind|vague|careful|cautious|gentle|"
    r"tough|friendly|positive|negative|literal|relaxed|enthusiastic|optimistic|"
    r"compact|harsh|technical|detailed|precise|specific|serious|funny|warm|cold|slow|"
    r"long|dry|boring|patronising|patronizing|stiff|flowery|repetitive|soft)(?:er|r)?"
)
OTHERS = (
    r"(?:my|our|his|her|their|the) (?!answer|reply|result|point|source|formula|reason)"
    r"[\w’']+(?: \w+)?"
)
# What someone is, which holds for more than one answer.
SELF = (
    r"\b(?:I|we)(?:(?:['’]?m|['’]re| am| are) (?:(?:only|just|still|also) )?(?:an? "
    r"\w+|new to|not (?:a|good|very)|on \w+ (?:thinners|pills|medication)|dyslexic|"
    r"blind|deaf|autistic|color|colour|vegan|vegetarian|pregnant|broke|from|based|"
    r"left|right|\d+ years|british|american|german|french|indian|chinese|european|"
    r"canadian|australian)| (?:use|write|work|live|read|teach|cook|drive|speak|only|"
    r"keep|rely|suffer|have (?:no|a(?:n allergy| bad| weak| slow| disab)|adhd|"
    r"dyslexia|autism|kids|trouble|bad|poor|weak)|can['’]?t|cannot|don['’]?t|do not|"
    r"won['’]?t)\b)(?! (?:want|know|understand|think|wait|believe|mean|see why)\b)"
)
SO = r"[^,;]{1,60}?(?:,|\bso\b)"
SAID = (
    r"said|says|say|told|tells|asks|asked|wrote|writes|wants|wanted|kept|keeps|"
    r"screamed|shouted|yelled|insist(?:s|ed)|demand(?:s|ed)|order(?:s|ed)|warned|"
    r"warns|begged|begs|reminds|reminded|prefers|preferred"
)
ENGLISH = Grammar(
    acts=_compile_any(
        CLAUSE + ADVERBS + VERBS,
        # Requests, and what the other is told to do, or may.
        rf"\b(?:can|could|would|will|might|may) (?:could )?{YOU} (?:be able to )"
        rf"?{ADVERBS}" + VERBS,
        r"\bit(?:['’]s| is) (?:fine|ok(?:ay)?|all right|alright) (?:for you )?(?:to|"
        r"if you) \w+",
        rf"\b(?:it is|it['’]s) (?:imperative|essential|important|vital) that {YOU}\b|"
        rf"\b{YOU} are (?:requested|asked|expected|required|advised|reminded) to\b|"
        rf"(?<!when )(?<!if )(?<!time )\bI (?:must )?(?:insist|request|demand|"
        rf"require|ask)\b",
        rf"\bwould it bother {YOU} to\b|\bmight I (?:ask|request)\b",
        rf"\bwould {YOU} mind (?:not )?\w+ing\b",
        rf"\b(?:may|can|could) I (?:please )?(?:ask|beg|trouble) {YOU} to\b",
        r"\b(?:I|it)(?:['’]?d| would| will|['’]ll) (?:really |much |also )?(?:be \w+|"
        rf"help|appreciate|love|like|ask|rather|prefer|sooner)(?: it)?(?: me)?(?: a "
        rf"lot)?(?: if| for| that)? {YOU}\b",
        rf"\b(?:want|need|expect|require|trust|hope) (?:for |that )?{YOU} (?:to )"
        rf"?{ADVERBS}" + VERBS,
        rf"\bbe (?:\w+ )(?:for {YOU} to|if {YOU})\b",
        r"\b(?:do (?:us|me) a favou?r and|feel free to|be sure to|(?<!to )make sure "
        r"(?:to|that|"
        rf"{YOU})) {ADVERBS}{VERBS}",
        rf"\b{YOU} (?:can|may|might|must|should|shall|oughta|ought to|need to|have "
        rf"to|are (?:not )?to|will|gotta|could)(?: not)? {ADVERBS}{VERBS}",
        CLAUSE + rf"(?:let['’]?s {ADVERBS}{VERBS}|{YOU} {VERBS})",
        rf"\b{ANSWERS}\b.{{0,40}}\b(?:(?:is|are) to be|shall|must)\b",
        r"\b(?:can|could|shall) we (?:please |just )?(?:keep|stay|stick|speak|talk|"
        r"use|switch|continue|chat|write|drop|skip|stop)\b",
        rf"^(?:money|prices?|amounts?|dates?|times?|temperatures?|distances|weights|"
        rf"sums|costs|{ANSWERS}) (?:always )?(?:in|as|with|without|under|like) ",
        rf"\bso,? (?:all|any|every|only) (?:\w+ )?{ANSWERS}",
    ),
    bans=_compile_any(
        CLAUSE
        + r"(?:always )?+(?:do ?n['’]?[o]?t|dont|dnt|don['’]t|dinnae|do not|never|"
        r"stop|quit|cease|no more|no|nae|less|fewer|enough (?:with|of)|skip|drop|"
        r"omit|ditch|lose|spare me|leave out|cut (?:the|out|back|down)|avoid|"
        r"refrain|without)\b(?! (?:idea|one|way|worries|prob(?:lem)?|matter|"
        r"doubt|mind|need for|going|been|had|saw|seen|knew|felt|thought|heard|"
        r"met|got|went|in my|kidding|wonder|clue|thanks,|\w+ed)\b)",
        rf"\b(?:can|could|would|will) {YOU} (?:please )?(?:not|never|stop|quit|avoid|"
        r"leave out|skip|drop)\b",
        rf"\b{YOU} (?:keep|keep on) (?!up\b)\w+ing\b",
        rf"\b{YOU} (?:(?:don['’]?t|do not) (?:have|need) to|needn['’]t|can (?:drop|"
        rf"skip|"
        r"stop|leave|omit|spare|cut)|must not|may not|should (?:not|never|at no))\b",
        rf"\b(?:no|ain['’]t no|isn['’]t any) need (?:for {YOU} )?to\b",
        r"\bI (?:don['’]?t|do not|never) want\b|\brefrain from\b",
        r"\b(?:if|when) you (?:did ?n['’]?t|don['’]?t|never|avoided|stopped)\b",
    ),
    stated=_compile_any(
        # How replies read to this person.
        r"\bI (?:\w+ ){0,2}(?:find|understand|learn|follow|get|work|like|love|prefer|"
        r"enjoy) (?:it |things |\w+ )?(?:\w+ ){0,2}(?:easier|easiest|better|best|"
        r"more|most)\b.*\b(?:(?:when|if) you (?!are\b|were\b|see\b)|with each|in "
        r"your|explanation|from you)",
        rf"\b(?:long|short|big|dry|huge|your)\b.{{0,15}}\b{ANSWERS} (?:are|is) "
        rf"(?:too \w+|"
        r"\w+) .{0,20}\bme\b",
        r"\bfrom you\b.*\b(?:for|to|with) me\b|\bfor me is\b.*\bfrom you\b",
        r"\bI (?:just |kinda |always )*(?:get lost|lose track|zone out|give up) "
        r"(?:in|with|at|when) (?:your|long)\b",
        r"^as a rule,? I (?:want|like|need|prefer|expect)\b",
        rf"\b(?:your|any|all|every) (?:\w+ ){{0,4}}?{ANSWERS}(?: \w+){{0,6}}? "
        rf"(?:should|must"
        r"|shall|has to|have to|needs? to|(?:is|are) to)\b",
        rf"\bI(?:['’]d| would)? (?:also )?(?:like|want|need|prefer) [^,;]{{1,60}} "
        rf"(?:in|with|for) (?:everything|all|any|each|every) (?:you|of your|your|"
        rf"{ANSWERS})",
        rf"\bI (?:think|work|count|measure|cook) in {UNITS}\b",
        rf"\b{UNITS}\b.{{0,30}}\b(?:for us|between us|with me)\b",
        # Names.
        rf"\bI go by\b|\b(?:friends|everyone|everybody|people)\b.{{0,12}}\b(?:call "
        rf"me|say)\b.*\b{YOU} (?:can|may|could|should)\b",
        r"\b(?:it['’]s|I['’]m|name is|nmae is) (?:just )?(?-i:[A-Z])\w+, (?:not|no "
        r"?body|no one)\b|\bmy (?:name|nmae)(?:['’]s| is) \w+\b.*\b(?:you|u) can\b",
        # What replies cannot use with this person.
        r"\bI (?:rely on (?:text|descriptions|a screen|captions|audio)|can only "
        r"(?:see|read|hear)|cannot see|can['’]t (?:see|read|hear)|don['’]t do "
        r"(?:metric|imperial|tables|charts|jargon))\b",
        r"\bI['’]?d (?:like|prefer|love) to be (?:called|addressed)\b|\bmy "
        r"pronouns\b|\bI (?:won['’]t|never|only|don['’]t) read (?:anything|any|more|"
        r"past|beyond|the|texts?|long)",
        rf"\b{ANSWERS} (?:help|suit|confuse|annoy|irritate|bore|tire|overwhelm) me\b",
        rf"\byou(?:['’]re| are|r) (?:\w+ )?(?:too|so) (?:{TONE}|much)\b.*[,;]",
        rf"\bwe (?:only |just )?(?:speak|talk|write|use|stick to) (?:only )"
        rf"?(?:{TONGUES}|{UNITS}|\w+) (?:here|in this)\b",
        r"\b(?:it|that) (?:\w+ )?(?:bugs|annoys|bothers|irritates|confuses|helps|"
        r"hurts|upsets|stresses|tires|distracts) me (?:\w+ )?(?:when|if) you\b|\bI "
        r"(?:hate|dislike|don['’]t like|can['’]t stand)(?: it)? (?:when|if|that|how) "
        r"you\b|\bI (?:like|prefer)(?: it)? (?:when|if) you\b",
        rf"\byour (?:\w+ )?(?:jokes|tone|style|examples|formatting|{ANSWERS}) (?:is|"
        rf"are|sounds?|feels?)\b[^,;]*[,;]|\byou (?:always|keep|constantly)"
        rf"\b[^,;]*[,;] (?:please )?(?:stop|don['’]t|quit)",
        r"\bI (?:do not|don['’]t|never|['’]d rather not) (?:want|like|wish|need|"
        r"care) (?:to be|being|any|your|for your|hearing|seeing|reading)\b",
        rf"^(?:just )?(?:\w+ ){{0,3}}{ANSWERS} (?:without|with|under|within|in|only)"
        rf"\b[^,]*(?:please|pls|plz|always)\b",
        r"\bthe name['’]?s (?-i:[A-Z])\w+, not\b|\bthat goes for (?:every|all)|"
        r"\b(?:max|at most|maximum|tops)\b.{0,12}\bper\b|\bfrom you\b.*\b(?:please|"
        r"in general)\b",
        rf"^(?!.*\b(?:I['’]ll|I will|I['’]m going|going to|I (?:was|have been|"
        rf"started))\b)(?:.*[,;:—] ?|.{{0,40}}\b)?(?:in this (?:whole |entire )"
        rf"?(?:chat|conversation)|from (?:now|here) on(?: in| out)?,(?! (?:the|it|we|"
        rf"he|she)\b)|in (?:all |any )?(?:your|future|later) (?:\w+ )?{ANSWERS}|"
        rf"whenever you (?!want|can|like|need|feel|are|have|get)\w+)",
        rf"{SELF}[^,;]{{1,60}}, (?:so )?(?:\w+ ){{1,4}}(?:only|please|pls)[.!]*$|"
        rf"\bwhat I (?:need|"
        r"want|expect) from you\b|\bthe way I like\b|\bthat['’]s how I (?:like|want|"
        r"prefer)\b",
        r"\b(?:is|are) (?:useless|no use|no good|pointless) (?:to|for) me\b|"
        r"\bI(?:['’]d| would) appreciate (?:fewer|less|more|no|\w+er)\b",
        r"\bfrom now on,? (?:you|we)(?:['’]re| are|['’]ll)\b|\b(?:let me|may I|can I|"
        r"I['’]ll) call you\b|^(?:please )?default to\b|\byour default\b",
        rf"^(?:no more than|at most|max(?:imum)?|under) \w+ (?:options?|words|lines|"
        rf"sentences|points|bullets|paragraphs|{ANSWERS})\b",
        rf"\b(?:I|me)\b[^?]{{0,40}}\b(?:when|if) you (?:{VERBS}|jump|ramble|rambling|"
        rf"switch|go (?:step|on|off|too|slow)|change|over-?explain)",
        rf"\b(?:if|that|when) your (?:\w+ )?{ANSWERS}\b|\b{UNITS},? not {UNITS}\b",
        r"\bI (?:have|am|can['’]?t|don['’]?t|never|only|live)\b[^.?]{1,60}(?:\bso\b|"
        r",)(?: so)? (?:please )?(?:no (?!one|time|idea|prob|worr|need|matter|doubt|"
        r"longer)|nothing\b|only\b|keep\b|always\b)",
        rf"^(?:{ANSWERS}) in \w+[.!]*$|^{TONE} (?:words|language|english) (?:please|"
        rf"pls|only)\b",
        r"(?<!that )(?<!^)\b(?:shall|must|(?:is|are) expected to) (?:not )"
        r"?be\b.*\b(?:you|your)\b",
        # Without a verb: "metric always", "sources every time".
        r"^(?!I\b|we\b|he\b|she\b|it\b|they\b|this\b|that\b|you\b|why\b|how\b)"
        r"[^,]{3,60}(?:, [^,]{3,60})?, (?:always|every time|each time|from now on)"
        r"[.!]*$",
        rf"^(?:only )?one \w+ (?:per|in each|in every|a) (?:{ANSWERS})\b",
        r"^(?!I\b|we\b|he\b|she\b|it\b|they\b|this\b|that\b|you\b|why\b|how\b)"
        r"(?:[\w-]+,? ){1,4}(?:always|forever|every time|each time|only|from (?:now|"
        r"nwo|here)(?: on| "
        r"out)?)(?: please| pls| thx| ok)?[.!]*$",
        rf"^(?:less|more) {TONE} (?:please|pls|plz)\b|^from (?:now|here) on,? "
        rf"(?:only |all )?(?:{TONGUES}|{UNITS}|prices|dates|times|short|no)\b",
    ),
    lasting=_compile_any(
        r"\b(?:always(?! (?:an?|the|good|nice|great|here|there|been|wanted|loved|had|"
        r"felt)\b)|alwyas|alwas|allways|(?<!you )ever|never|whenever|forever|"
        r"henceforth|hereafter|throughout|consistently|anymore|any more(?=$|[,.!])|"
        r"anymroe)\b",
        rf"\b(?:every|evry|each)(?: ?time|(?: single)?(?: \w+)? {ANSWERS})\b|\bany "
        rf"?time\b",
        rf"\b(?:each|every|any|all|everything|anything|whatever)(?: \w+){{0,2}} "
        rf"{YOU}\b",
        r"\bevery (?:morning|evening|day|night)\b|\bin general\b",
        r"\bfrom (?:now|nwo|here|today|this (?:point|moment)|then) ?(?:on|out)",
        r"(?<!keep )\b(?:going|moving) forward\b|\bin (?:the )?future\b|\bfor "
        r"(?:good|ever)\b",
        r"\bat (?:all times|no (?:point|time)|any (?:point|time))\b",
        r"\bunder no circumstances\b|\ball the time\b|\bas a rule\b|\bby default\b",
        r"\b(?:rest|remainder) of (?:this|our|the) (?:chat|conversation|talk)",
        r"\b(?:in|for|during) (?:this|our)(?: whole| entire)? (?:chat|conversation|"
        r"talks?)\b",
        r"\b(?!(?:an?d?|can|could|would|will|do|did|if|may|should|to|that|thank|when|"
        r"what|how|or)\b)\w+ you (?:draft|write|send|give|show|use|make|suggest|cite|"
        r"recommend|code)\b|\b(?:all|each|every|any)\b.*\b(?:for|to|with) me\b|"
        r"\bdefaults? to\b|\byour default\b|\bfrom today\b|\bin (?:all|any|every) "
        r"(?:of )?my\b",
        rf"\b(?:in|for|of|with|at) (?:all|any|every|your|each) (?:\w+ )"
        rf"{{0,2}}{ANSWERS}\b",
        r"\b(?:all|any) (?:subsequent|later|future|further)\b|\bor later\b",
        r"\b(?:when|if|wherever|anytime) (?:I|you|u|we|ye) (?:ask|answer|cite|code|"
        r"comment|correct|draft|explain|get|give|list|make|mention|name|quote|"
        r"recommend|refer|reply|review|say|show|speak|suggest|talk|teach|tell|use|"
        r"write)\b",
        r"\bwhen (?:you['’]?re|ur) (?:un)?(?:sure|certain)\b",
    ),
    manner=_compile_any(
        rf"\b(?:your|short|long|longer|brief|tiny|chatty)(?: \w+)? {ANSWERS}\b",
        r"\b(?:emojis?|emoticons|smileys|bullet ?points?|bullets|tables?|headings|"
        r"headers|markdown|bold|jargon|slang|acronyms|abbreviations|exclamation "
        r"marks?|semicolons|disclaimers?|caveats|hedg\w+|preambles?|intros?|"
        r"introductions?|outros?|pleasantries|greetings|clos(?:es|ing) \w+|small "
        r"?talk|filler|fluff|flattery|compliments|apologi\w+|(?:say|saying) sorry|"
        r"passive voice|rhyme|buzzwords|big words|(?:simple|easy|plain) (?:words|"
        r"english|language|talk)|follow[- ]?up questions|folow up|citations?|sources|"
        r"references|footnotes|page numbers?|pinyin|theory|spoilers|formatting|"
        r"lectur\w+|preach\w+|morali[sz]\w+|swear\w*|sarcas\w+|spelling|"
        r"counterarguments?|unit tests|docstrings|type hints|(?:latin|full|first|"
        r"last) names?|ma['’]am|sir|steps|numbered|walls of text|point first)\b",
        rf"\b(?:talk|speak|writ\w+|be|being|explain|lie|{TONE}|call\w*|address\w*) "
        rf"(?:\w+ )?"
        r"(?:down )?(?:to|with|wi|at|about)? ?(?:me|us)\b(?! (?:when|if|at|on|in|"
        r"back|later|tomorrow|tonight|soon|old|up|out)\b)",
        rf"\b(?:be|so|too|overly|less|more|being) {TONE}\b|\b{TONE} about my\b",
        r"\b(?:repeat|rephrase|restate|echo)\w* (?:my|what I|back|the question)",
        rf"\b(?:in|to|into|auf|en) (?:\w+ )?{TONGUES}\b|\b{TONGUES}\b",
        rf"\b{UNITS}\b|\bunits?\b",
        r"\b(?:dates?|prices?|times?|amounts?|temperatures?|numbers?|figures) (?:in|"
        r"like|as)\b",
        r"\b(?:without|before)\b.{0,40}\b(?:asking|permission|consent|checking with)\b|"
        r"\bask(?:ed)? (?:me )?(?:first|before)\b",
        r"\b(?:product )?(?:recommendations?|recommend|suggest\w*|assume|guess|invent|"
        r"make up|fabricat\w+|speculat\w+|sugarcoat|hallucinat\w+|nitpick)\b",
        r"\b(?:stop|quit) (?:with\b|(?:\w+ly )?(?!worry|cry|work|smok|being hard|"
        r"think|com)\w+ing\b(?! (?:your|the|and|at|by)\b))|\benough (?:of|with)\b|"
        r"\bno more of\b",
        r"\b(?:don['’]?t|dont|do not|never) (?:ever |even )?(?:bother|try to|start|"
        r"end|explain|ask|mention|use|say|add|repeat|suggest|call|send|include|talk|"
        r"speak|treat|be so|be too|give me|show me|tell me to|thank|praise|offer|"
        r"summari[sz]e|quote)\b",
        r"\bso (?:many|much|often)\b|\b(?:never|don['’]?t|do not)\b.*\bagain\b|\bthe "
        r"(?:\w+ )?(?:stuff|talk|jokes|fluff|act|tone|drama|clich\w+|mode|voice|"
        r"persona)\b|\bneed(?:n['’]t)? (?:to )?(?:explain|tell me|greet|repeat|"
        r"apologi|justify|thank|introduce|remind)",
        r"\brewrite\b|\bmy (?:drafts?|chapters?|writing|code|texts?|mistakes|"
        r"pronouns)\b",
    ),
    style=_compile_any(
        rf"\b(?:keep|keeping|make|making|limit|limiting) (?:all )?(?:your|the|ur) "
        rf"(?:\w+ )?{ANSWERS}\b",
        r"\b(?:call|address) me\b(?! (?:when|if|at|on|in|back|later|a\b|an\b|crazy|"
        r"after|tomorrow|tonight|soon|asap|old|up|out|maybe|any ?time|please|now|"
        r"to\b|for\b|and\b|first|once|before|or\b)\b)\W?\s*\w",
        r"\baddress me\b|\b(?:treat|roast|contradict|challenge) me\b|"
        r"\bremember\b.*\bI\b",
        rf"\b(?:swear|talk|speak|be (?:so |more |less |as )?{TONE}) (?:\w+ )"
        rf"{{0,2}}(?:with|to|"
        r"wi) (?:me|us)\b",
        r"\b(?:explain|talk|speak|describe)\b[^,]{0,30}\b(?:like|as if|as though) "
        r"(?:I|im|a|an|to)\b",
        rf"\b(?:answer|reply|respond|speak|talk|chat)\b(?: \w+)?(?: to| with)?(?: me)"
        rf"? (?:in|auf|en) {TONGUES}\b|\blet['’]s (?:speak|use|stick to)"
        rf"\b.*(?:{TONGUES}|{UNITS})",
        rf"\b(?:use|stick to|switch to|give|in) (?:\w+ ){{0,2}}{UNITS}\b.*\b(?:for|"
        rf"with|when)"
        r" (?:me|us|you)\b|\buse (?:my )?time ?zone\b",
        r"\bassume\b.*\b(?:when we|I(?:['’]m| am| have| know| use| can)|the reader)\b",
        r"\b(?:keep|bear) (?:\w+ )?in mind\b|\bone question at a time\b|\bblunt\b",
        r"\bin (?:everything|all|any(?:thing)?|every|each) (?:\w+ )?(?:you|answer|"
        r"repl)",
        r"\b(?:when|if) you(?:['’]re| are) (?:un)?(?:sure|certain)\b",
        r"\bask(?:ed)? me (?:first|before)\b|\b(?:keep|make) (?:it|things|everything|"
        r"evrything) (?:to|short|simple|brief|under|civil|light|clean)\b|\bremember "
        r"(?:that|this|it) (?:for|when|in)\b",
        r"\b(?:if|when|whenever|where) (?:in doubt|unsure|you (?:don['’]t|do not|"
        r"can['’]t|cannot|aren['’]t|are not) (?:know|sure|find|certain|have)?)\b(?! "
        r"(?:like|want|mind))",
        r"\bbefore you \w+|\bwhatever I\b|\binstead of (?:inventing|guessing|making|"
        r"assuming)|\buntil I (?:say|tell)\b|\bper (?:message|answer|reply|response)\b",
        r"\b(?:act|answer|talk|speak|write|behave) (?:to me )?(?:as|like) (?:an?|my)"
        r"\b|\bgo (?:slow|easy)",
        rf"\bbe (?:more |less |a bit |very |so |as )?{TONE} (?:with|to|on|about) "
        rf"(?:me|my)\b",
        r"\bmy (?:first|last|real|full|nick) ?name\b|\btone it\b|\bwhen you (?:list|"
        r"cite)\b",
        rf"\bcan we \w+.{{0,20}}(?:{TONGUES}|{UNITS})",
        rf"^(?:money|prices?|amounts?|dates?|times?|temperatures?|distances|weights|"
        rf"sums|costs|{ANSWERS}) in \w+.{{0,10}}(?:please|pls|I['’]m)",
        r"\bunder \w+ (?:words|lines|sentences|paragraphs)\b|\bspell \w+ with\b|"
        r"\bleave my\b|\bneed(?:n['’]t)? (?:to )?(?:explain|tell me|greet|repeat|"
        r"apologi|justify|thank)|\b(?:speak|use|talk|write)\b.*\bwith me\b",
        rf"\b{UNITS},? not {UNITS}\b|\bI (?:tend to|get (?:anxious|lost|confused|"
        rf"nervous|tired|"
        r"bored|stressed|overwhelmed)|misread|struggle|mix up|['’]?m \d+)\b.*(?:,|"
        r"\bso\b)",
        rf"\bbe (?:a )?(?:little |bit |lot )*(?:more|less) {TONE}\b.{{0,20}}$",
        r"\b(?:stop|interrupt|correct|tell|warn) me (?:if|when|whenever) I\b",
        SELF + SO,
        rf"[,;] (?:as |because |since )?{SELF}",
    ),
    told=_compile_any(
        rf"\b(?:he|she|they|who|{OTHERS}) (?:\w+ )?(?:{SAID}|requires|refuses|used "
        rf"to|goes|"
        r"going to|never|always|hates?|likes?|prefers?)\b",
        r"^(?:and |so |but )?I(?:['’]ll| will|['’]m (?:going|gonna)| am going| plan| "
        r"started| was| have been|['’]ve been)\b",
        rf"\b(?!(?:you|I|we)\b)(?-i:[A-Z])\w+ (?:just |once |then )?(?:{SAID})\b",
        r"\b(?:told|asked|asks|tells|telling|begged|taught|made|wants) (?:me|us|him|"
        r"her|them|my \w+|people|everyone)\b",
        r"\bI(?:['’]ve)? (?:told|asked|read|heard|wrote to) (?!you\b|u\b|for\b)\w+",
        r"\b(?:what|why|how|whether|who|which|where) (?!you\b|I (?:say|write|ask|"
        r"need|want|expect|like|prefer))\w+",
        r"\b(?:used to|policy|guideline|contract|agreement|manual|employees|applicants|"
        r"parties|students)\b",
    ),
    once=_compile_any(
        r"\b(?:this|that) (?:one|time|once|bit|part|sentence|word|letter|e?-?mail|"
        r"paragraph|recipe|chapter|file|line|code|function|photo|picture|list|song|"
        r"poem|story|page|"
        rf"section|last|first|{ANSWERS})\b(?!.*\b(?:later|all)\b)",
        r"\b(?:the|that|your|his|her|its) (?:last|first|second|third|next|previous|"
        r"attached|final) (?!ma?n|name|version|person)\w+",
        r"\b(?:for now|just now|right now|today|tonight|tomorrow|once more|one more|"
        r"try again|just once|for once|a moment|(?:a )?(?:wee )?bit (?:shorter|"
        r"longer))\b",
        r"\b(?:translate|shorten|check|summari[sz]e|rewrite|fix|correct|read|explain|"
        r"put|make|answer) (?:this|that|it)\b|\bthis\s*[?.!]*$|\b(?:above|below|"
        r"attached)\b",
        r"\blet me know\b|\b(?:line|step|page|chapter|question|number) \d",
        # Something is made or told, not wished for.
        r"^(?:please |kindly |can you |could you |would you )*(?:write|draft|compose|"
        r"make|create|generate|translate|invent|give me|tell me|help) (?:\w+ )?(?:a|"
        r"an|the|my|some|about|how|what|why|who|if) (?!short|main|answer|result|"
        r"reason|easy)",
        r"\b(?:never|don['’]?t) (?:ever )?(?:give up|quit|stop|lose|forget (?:to|"
        r"that|how)|have to (?:win|worry|be perfect|do)|let |worry|hesitate|be "
        r"afraid|take )",
    ),
    requests=_compile_any(
        rf"\b(?:can|could|would|will|might|may) (?:could )?{YOU}\b",
        r"\b(?:may|can|could) I (?:please )?(?:ask|beg|trouble) you\b",
        r"\bwould it bother you\b|\bmight I\b|\bwould it be \w+ (?:for|if) you\b",
        r"\bcan we\b|,? (?:aye|ok|okay|yeah|right|alright|please|hor)\?$",
    ),
)

# Chinese has no words apart, so a clause is what begins after a comma.
OPENING = (
    r"(?:^|[，,：:；;、 ]|(?:麻烦|拜托|请|希望|辛苦|劳驾|烦请|想请|能不能|能否|"
    r"可不可以|可以|求|记住|记得|千万|绝对|务必|还有|另外|对了|但|所以|就|那|也|都)"
    r"(?:你|您|侬|你们)?)(?:你|您|侬|以后|今后|请|也|就|都|再|先|老|总|每次|尽量|一律|"
    r"千万|永远|绝对|跟我|给我|对我|和我|在任何情况下|均|草稿中){0,4}+"
)
SAYING = (
    r"(?:回答|回复|答复|回我|答我|答案|解释|讲解|说明|说话|跟我说|跟我讲|给我说|聊|唠|"
    r"交流|对话|语气|口吻|称呼|叫我|喊我|举例|例子|来源|出处|引用|参考文献|表情|"
    r"颜文字|[Ee]moji|感叹号|客套|寒暄|废话|开场白|套话|敬语|书面语|大白话|文绉绉|"
    r"专业名词|术语|总结|表格|[Mm]arkdown|列表|条目|分点|[Bb]ullet|加粗|标题|注释|"
    r"comment|代码|代马|分号|测试|单位|公制|英制|摄氏|华氏|开尔文|日期|格式|时间|时区|"
    r"UTC|小时制|价格|价钱|金额|人民币|美元|欧元|克|用量|反问|追问|道歉|夸|推荐|菜谱|"
    r"菜普|点评|批评|鼓励|结论|步骤|编号|段落|字数|字以内|繁体|简体|繁體|拼音|学名|"
    r"中文|英文|英语|日语|法语|德语|粤语|廣東話|广东话|普通话|四川话|English|用语|"
    r"用語|卡路里|热量|您|重复我|长篇大论|一大段|啰嗦|简短|简洁|随意|随便点|casual|"
    r"讲笑话|冷笑话|剧透|猜|编造|瞎编|文件|配置|改我的|图片|链接|题|PPT|课件|稿子|"
    r"大纲|论断|数据|事实|客气|正经|网络用语|口气|语调|文言文|白话|口语|短句|长句|"
    r"语言|称谓|名字|鸡汤|大道理|每句话|开头|结尾|这么|那么|以为|让我|提我|对我|给我|"
    r"跟我|每次|动不动|老是|链接|视频|把握|笑话|海盗|扮演|小写|大写)"
)
PEOPLE = (
    r"(?:[他她它佢]们?|妈|爸|爷爷|奶奶|外婆|外公|婆婆|公公|舅舅|叔叔|姑姑|阿姨|阿嬷|"
    r"阿嬤|老汉儿|俺娘|哥哥?|姐姐?|弟弟?|妹妹?|老公|老婆|丈夫|妻子|儿子|女儿|孩子|"
    r"朋友|同事|同学|学生|老板|领导|经理|上司|主管|老师|导师|助教|教练|医生|护士|患者|"
    r"病人|客户|房东|邻居|编辑|审稿人|委员会|公司|团队|team|学校|规范|规定|手册|指南|"
    r"文档|说明书|合同|协议|法律|部长|董事会|员工|家长|双方|申请人|作者|店员|司机|"
    r"电工|警察|大家|人们|别人|有人|小说|书里|电影|主角|叙述者)"
)
SELF_ZH = (
    r"(?<![帮给让叫替对跟])(?:我|俺|咱|我们)(?:家)?(?:都|只|也|就|天生|从小)"
    r"?(?:是(?!说|不是|想)|有(?!个|一|点|没|空)|用|吃素|写(?![一了])|耳背|没(?!什么|"
    r"啥|事|用|有空)|女儿|儿子|孩子|住在?|爬不|看不|听不|走不|一看|容易|"
    r"[一二三四五六七八九十]+|老是|不会|不懂|不能|没有|没钱|怀孕|信|教|学的?是|左|右|"
    r"才|今年)"
)
CHINESE = Grammar(
    acts=_compile_any(
        OPENING
        + r"(?:用|使用|采用|按|照|以|把|将|只|直接|先|附|加|写|给|讲|说|回|答|保持|"
        r"保留|控制|遵守|省略|略过|跳过|避开|注意|记得|记住|默认|假设|当|叫|称呼|"
        r"称|喊|指出|提醒|告诉|标注|列|举|检查|换算|翻译|解释|区分|明确|提供|改|"
        r"帮我改|配|出|教|随意|少|多|简|短|写得|整|喷)",
        r"(?:请|麻烦|拜托|烦请|劳驾|希望|唔該|唔该|请你|呗|要求|想要?)[^。]{0,20}",
        r"(?:你|您|侬)(?:就|也|都|要|得|可以|应该|必须|尽管|只|每次|的回答|的回复)",
        r"(?:须|必须|均须|应当?|一律|统统|统一|都(?!会|有|是|很|能|在|出现)|要|得)"
        r"[^，。]{0,12}",
        SAYING + r"[^，。]{0,6}(?:用|按|都|要|短|简|长|点|就)",
    ),
    bans=_compile_any(
        OPENING
        + r"(?:不要|不用|别(?!人|的|处|墅|扭|致|名|离|急|怕|慌|走|闹|哭|担心)|甭|"
        r"憋|表(?!示|格|达|现|情)|莫要?|唔好|唔使|勿要|不准|不许|不得|不必|无需|"
        r"禁止|严禁|少(?:给我|来|跟|说)|切勿|拒绝|请勿|不可)",
        r"(?:以后|今后|之后|往后)[^，。]{0,10}(?:不要|别|甭|憋|表|莫|唔好|不准|不许|"
        r"少|省|免)",
        r"(?:你|您|侬|你们)(?:能不能|可不可以)?(?:怎么)?(?:别|不要|老是|总是|又|老)",
        r"^(?:你)?(?:以后)?(?:请)?(?:别|不要|不许|请勿|不准|甭)(?:这么|那么|太|老|总|"
        r"以为|以|把|让我|对我|给我|跟我|每|在回|动不动|一上来|再|提|假装|学|装|用|"
        r"说|讲|揣测|评判|分析|质疑|添加|问候|问我|催|安慰|教育)",
        r"不得|(?:就|可以|统统|全)(?:不用|不要|不写|省了|跳过|免了)|没(?:我)?同意",
    ),
    stated=_compile_any(
        r"(?:你|您)[^。]{0,12}(?:太长|一大段|太复杂|太快|长了)"
        r"[^。]{0,4}我[^。]{0,8}(?:只|看|读|懂|不|困|累)",
        r"我[^，。]{0,8}(?:眼睛|视力)(?:不太?好|差|有障碍)|有视力障碍，凡",
        r"我(?:[^，。]{0,4})(?:习惯|适应|倾向于?|更喜欢|比较喜欢|喜欢)"
        r"[^。]{0,14}(?:你|先|回答|例子|段落|问题|结论|意见|讲|说)",
        r"对我没(?:什么|啥)?用|我看着(?:累|费劲|头疼)|看着累|看的?(?:到)?眼花|"
        r"我(?:会|就)(?:好懂|犯困)",
        r"(?:叫|喊|称呼)我[^，。]{1,8}(?:就行|就好|就可以|就得|就中|即可|吧|好了|ok)|"
        r"(?:^|[，,：: ])(?:请|麻烦)?(?:叫|称呼|喊)我(?!怎么|去|来|起|做|干|帮|等|"
        r"一声|该|滚|回)[\w]{1,6}$",
        r"我[姓叫][\w]{1,4}[，,](?:不[姓叫是]|别|你)|没人叫我|提到我[^。]{0,4}用",
        r"(?:咱们?|我们)(?:这里|这儿|之间|聊天|的对话)[^。]{0,12}(?:都|只|就|用|不|"
        r"一点)",
        r"宁可你|(?:基础|入门)[^。]{0,6}不用(?:跟|给)我(?:讲|说)|(?:不用|别)"
        r"给我留(?:面子|情面)|我(?:的稿子|写的)[^。]{0,10}(?:不用客气|尽管)|(?:就|请)"
        r"?当我(?:家|是|没|不)",
        r"(?:推荐|菜谱|菜普|教我|说时间|提到我)[^。]{0,8}(?:注意|记得|避开|别放|"
        r"不要放|放|按我|记倒|考虑|要低|低糖|别忘)",
        r"可以(?:跟|对|和)我|(?:跟|对|和)我可以|^我只(?:关心|想(?:看|听|要|知道))"
        r"[^。]*(?:什么都|都|以后|不)|用到[^，。]{1,8}就|(?:从现在起|以后)你(?:叫|是)"
        r"|(?:[^，。]{2,6})(?:少用|多用|别用|不要用)$|(?:聊天|说话)(?:时|的时候)"
        r"?(?:就)?(?:喊|叫)我|我要的是[^，。]+[，,](?:不是|别)|我喜欢这样|(?:选项|"
        r"建议|方案|例子|要点)最多|[称叫]我[^，。]{1,5}为|对我(?:没用|没意义|没帮助)|"
        r"^少[^，。点]{1,3}我|不用(?:说|解释|告诉我)(?:你|为什么)",
        r"你[^，。]{1,10}我(?:就|才|更|会)?(?:容易|好)?(?:懂|跟不上|听不懂|看不懂|"
        r"舒服|记得住|理解)|^(?:请)?(?:确保)?(?:草稿|示例|例子|图表|译文|文中|回复|"
        r"引用)(?:中|里)?(?:请|应|须|不|要|别|只|一律)|我[^，。]{2,14}[，,](?:所以)"
        r"?(?:多|少|请|慢慢)[^了的]{1,8}$|介意以后|^(?:有话直说|说人话|"
        r"只能用[^，。]{1,6}回答)|你的?[^，。]{1,8}太[^，。]{1,8}[，,][^。]*一?点",
        r"(?:直呼|直接叫|叫)我?(?:的)?名字?|(?:超过|多于|太长)"
        r"[^。]{0,10}我就?(?:不看|不读|看不)|一(?:条|次|个)(?:消息|回答|回复)?(?:只|"
        r"就)(?:说|问|讲|给|答)",
        r"(?:你|您)(?:太|也太|真)(?:啰嗦|客气|正经|死板|长|复杂|官方|严肃)[^。]*[，,]",
        r"不知道(?:的)?就说|(?:之前|以前)(?:都)?(?:先|请|要)(?:问|告诉|跟|给)我|"
        r"不管我|无论我",
        rf"{SELF_ZH}[^，。]{{0,14}}[，,](?:所以)?(?:请|就|要|别|不要|不用|慢|给我|都|"
        rf"全|推荐|安排|讲|解释|写|只|记一下|记着|文明|"
        r"[^，。]{1,8}(?:一?点|请|要|都|避开|注意|考虑|步骤))",
        r"(?:这里|这儿|咱们?|我们)(?:都|只|就|全)(?:讲|说|用|写)",
        r"(?:鸡汤|废话|客套|寒暄|铺垫|开场白|大道理|安慰|鼓励|道歉|套话)"
        r"[^，。]{0,4}(?:免|省|少|不用|算)",
        r"(?:狠|严厉|直接|毒舌|随意|温柔|慢|简单|细|通俗)一?点[，,]我|^每次(?:结尾|"
        r"开头|最后|回)",
        r"(?:给我?的?|写的|给出的)(?:代码|例子|图|表|链接|答案|文字)"
        r"[^，。]{0,8}(?:不|别|要|都|请|用|带)",
        r"^(?:价格|金额|时间|日期|温度|单位|数字|距离|长度|重量)(?:报|写|用|按|给|都|"
        r"算|以)",
        r"(?:你|您)[^。，]{0,14}我(?:看着|听着|觉得)?(?:别扭|难受|烦|不习惯|不舒服|"
        r"头疼|看不懂)|^(?:你|您)(?:老|总)[^。]{1,20}[，,](?:别|不要|改)|我不(?:想|"
        r"愿意?|希望)(?:被|看到|听到|再)|什么都这样|(?:最多|不超过)[^。]{1,6}(?:字|"
        r"句|行|段)|(?:家里|家)有[^，。]{1,8}[，,][^。]*(?:别|不要|避开)|"
        r"我[^，。]{1,10}就(?:打断|指出|提醒|纠正|告诉)|^(?:问|聊|说|谈|涉及|提到|"
        r"碰到|遇到)[^，。]{1,10}的(?:时候|话|时)",
        r"^(?:少废话|说人话|说重点|只说重点|不要敬语|时间用|时间按)",
    ),
    lasting=_compile_any(
        r"以后(?!再说)|以後|今后|往后|之后(?:都|回|的回|请|用|再|别|不)|之後都|从今|"
        r"从现在|从此|接下来(?:的|都|请)|后续|此后请|自即日|自今日",
        r"每次|每当|每个|每一|每条|每段|每回|凡是?|一律|统统|统一|全部(?:都|用)|所有|"
        r"始终|永远|一直(?:都|这)|总是|随时|默认|任何情况|再也|老是|老给|成日|每每|"
        r"均须|均不得|一概",
        r"(?:本次|这次|我们的|咱们的|整个)(?:对话|聊天)|都(?:用|按|要|请|给|写|说|回|"
        r"帮|附|先|不|别|得)|除非|未经|没我?同意",
        r"(?:的时候|时|时候|的时侯|如果我|要是我|我一说|一说)[^。]{0,20}(?:你|请|都|"
        r"就|别|不要|记得|只|用|先|要|把)",
        r"别再|不要再|不许再|不准再|表再|憋再|甭再|又(?:动|推荐)",
    ),
    manner=re.compile(SAYING),
    style=_compile_any(
        r"(?:用|使用|以|讲|說|说)[^，。]{0,4}(?:中文|英文|英语|日语|法语|德语|粤语|"
        r"廣東話|广东话|普通话|繁体|繁體|简体|大白话|English|四川话|东北话)"
        r"[^，。]{0,6}(?:答|回|聊|说|讲|交流|$)",
        r"(?:用|按)[^，。]{0,6}(?:公制|英制|摄氏|华氏|开尔文|小时制|UTC|时区|人民币|"
        r"ISO)",
        r"(?:跟|对|和|同)我(?:说话|讲话|聊天|说|讲)|你(?:就|尽管|只管)|(?:称呼|叫|喊)"
        r"我为?[\w]",
        r"回答(?:里|中|时)|随时(?:告诉|指出|说)|指出|(?:^|[，,]|时候|请)(?:记得|记住)"
        r"|注意一下|用量|推荐的时|用[^，。]{1,6}(?:口气|语气|口吻|风格)|扮演|当我的|"
        r"直到我|在回(?:答|复)(?:后|前|里|中|时)|(?:回我|回复我|答我)"
        r"[^，。]{0,4}(?:时候|时|就|用|要|带)",
    ),
    told=_compile_any(
        rf"{PEOPLE}[^，。的]{{0,10}}(?:说|叫|喊|让|请|要我|要求|规定|告诉|写着|写道|"
        rf"提醒|教|骂|吼|问我|总|老是|老喜|"
        r"从来|必须|须|不得|不许|不准|应当?|禁止|会|都|喜欢|倾向|偏好|拒绝|习惯|没)",
        rf"(?:请|叫|让|跟|对|告诉|劝|称呼){PEOPLE}|(?:根据|按照)[^，]{{1,8}}，|(?:听|"
        rf"据|老话|常言|俗话)说|写着|让我(?!们)|(?:以前|上次|去年|"
        r"小时候|当时|昨天|刚才)[^，。]{0,10}(?:说|叫|让|把|用|都)",
        r"(?:什么|怎么|为什么|为何|哪|谁)(?!时候)",
        r"以后我(?:们)?(?:想当|想去|要去|会|打算|准备|再也)|我(?:们)?(?:以后|今后|"
        r"再也|从来|总是|老是|一直|每次|都|一般|老)(?!不吃|不喝|不能|吃素|看)",
    ),
    once=_compile_any(
        r"这(?:一)?(?:个|次|封|段|篇|句|条|首|道|本|份|张|题|回|里的)(?!对话|聊天|来)"
        r"|刚才|刚刚|那(?:个|封|段|篇|句)|这一|第[一二三四五六七八九十\d]+(?:段|章|"
        r"节|行|步|题|页|部分)|再来|重来|上面|下面|附件|现在(?!起|开始|不要)",
        r"^(?:请|麻烦|帮我|帮俺|能不能|可以)?(?:你|您)?(?:帮我)?(?:写[一首篇封个段]|"
        r"起草|翻译|概述|解释一下|想一|看一下|看看|列出|总结)|不要紧|别担心|别急|"
        r"别提了|别着急|别怕|没事|写[一首篇封]",
    ),
    requests=_compile_any(
        r"能不能|能否|可否|介意|可不可以|可以[^？?]{0,30}[吗嘛]|(?:好不好|好吗|行吗|"
        r"行不行|中不|好伐|成吗|可以吗|好嘛)",
    ),
)
GRAMMARS = (ENGLISH, CHINESE)
HAN = re.compile("[\u4e00-\u9fff]")


# How many words may stand before what lasts, where the wish comes after it.
MARKS = ",，:：;；—"
LEAD = re.compile(r"\s*(?:\S+\s+){0,3}\S{0,12}")


def find_wish(sentence: str, *, is_question: bool = False) -> int | None:
    """Where a wish for later answers begins in a sentence, if it has one."""
    found = (_find_wish_in(each, sentence, is_question) for each in _choose(sentence))
    return next((at for at in found if at is not None), None)


def is_told(sentence: str, end: int) -> bool:
    """Whether what ends there is said by others, or of them."""
    return any(each.told.search(sentence, 0, end) for each in _choose(sentence))


def _choose(sentence: str) -> tuple[Grammar, ...]:
    return GRAMMARS if HAN.search(sentence) else GRAMMARS[:1]


def _find_wish_in(grammar: Grammar, sentence: str, is_question: bool) -> int | None:
    if is_question and not grammar.requests.search(sentence):
        return None
    begins = grammar.stated.search(sentence)
    if not begins and not grammar.once.search(sentence):
        begins = _find_ban(grammar, sentence) or _find_act(grammar, sentence)
    if begins and not grammar.told.search(sentence, 0, begins.end()):
        return begins.start()
    return None


def _find_ban(grammar: Grammar, sentence: str) -> re.Match[str] | None:
    ban = grammar.bans.search(sentence)
    if not ban or grammar.manner.search(sentence):
        return ban
    return ban if _does_last(grammar, sentence, ban.start()) else None


def _find_act(grammar: Grammar, sentence: str) -> re.Match[str] | None:
    act = grammar.acts.search(sentence)
    if not act or grammar.style.search(sentence):
        return act
    return act if _does_last(grammar, sentence, act.start()) else None


def _does_last(grammar: Grammar, sentence: str, at: int) -> bool:
    """Whether the wish that begins there is for all time: what says so comes after it,
    or begins a clause before it."""
    for each in grammar.lasting.finditer(sentence):
        clause = max(sentence.rfind(mark, 0, each.start()) for mark in MARKS) + 1
        if each.start() >= at or LEAD.fullmatch(sentence, clause, each.start()):
            return True
    return False
