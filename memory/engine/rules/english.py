"""The grammar of requests in English."""

from .grammar import Grammar, compile_any

YOU = r"(?:you|u|ya|ye|y['’]all)"
# The beginning of a clause, and the words that may come before its verb.
FILLERS = (
    r"(?:please|pls|plz|pleas|kindly|just|ok|okay|oh|ah|ugh|hey|haha|lol|yo|so|and|"
    r"but|oh for (?:heaven|god)['’]?s sake|then|also|well|honestly|seriously|btw|"
    r"really|thanks|thx|remember|maybe|lah|mate|actually|now|instead|important|note|"
    r"in future|by the way|one thing)"
)
CLAUSE = (
    r"(?:^|[,:;—–(] ?|\b(?:but|so|because|just|from (?:n[ow]{2}|here|today) on),? )"
    rf"(?:{FILLERS}[,:!]? ){{0,4}}+"
)
ADVERBS = (
    r"(?:(?:(?:be )?(?:so )?(?:kind|good) (?:enough|as) to|please|pls|also|just|only|"
    r"always|alwyas|allways|never|kindly|not|do|really|at no point|at all times|mostly|"
    r"try to|start to|be sure to|make sure to|make sure|at least|first|ever) ){0,3}+"
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
# Statements about the speaker, which hold for more than one answer.
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
    acts=compile_any(
        CLAUSE + ADVERBS + VERBS,
        # Requests, orders and permissions.
        rf"\b(?:can|could|would|will|might|may) (?:could )?{YOU} (?:be able to )"
        rf"?{ADVERBS}" + VERBS,
        rf"\b(?:it is|it['’]s) (?:imperative|essential|important|vital) that {YOU}\b|"
        rf"\b{YOU} are (?:requested|asked|expected|required|advised|reminded) to\b|"
        rf"(?<!when )(?<!if )(?<!time )\b(?:I|we) (?:must )?(?:insist|request|demand|"
        rf"require|ask)\b",
        rf"\bwould {YOU} mind (?:not )?\w+ing\b",
        rf"\b(?:may|can|could) I (?:please )?(?:ask|beg|trouble) {YOU} to\b",
        r"\b(?:I|it)(?:['’]?d| would| will|['’]ll) (?:really |much |also )?(?:be \w+|"
        rf"help|appreciate|love|like|ask|rather|prefer|sooner)(?: it)?(?: me)?(?: a "
        rf"lot)?(?: if| for| that)? {YOU}\b",
        rf"\b(?:want|need|expect|require|trust|hope) (?:for |that )?{YOU} (?:to )"
        rf"?{ADVERBS}" + VERBS,
        rf"\bbe (?:\w+ )(?:for {YOU} to|if {YOU})\b",
        rf"\b(?:do (?:us|me) a favou?r and|feel free to|be sure to|(?<!to )make sure "
        rf"(?:to|that|{YOU})) {ADVERBS}{VERBS}",
        rf"\b{YOU} (?:can|may|might|must|should|shall|oughta|ought to|need to|have "
        rf"to|are (?:not )?to|will|gotta|could)(?: not)? {ADVERBS}{VERBS}",
        CLAUSE + rf"(?:let['’]?s {ADVERBS}{VERBS}|{YOU} {VERBS})",
    ),
    bans=compile_any(
        CLAUSE
        + r"(?:always )?+(?:do ?n['’]?[o]?t|dont|dnt|don['’]t|dinnae|do not|never|"
        r"stop|quit|cease|no more|no|nae|less|fewer|enough (?:with|of)|skip|drop|"
        r"omit|ditch|lose|spare me|leave out|cut (?:the|out|back|down)|avoid|"
        r"refrain|without)\b(?! (?:idea|one|way|worries|prob(?:lem)?|matter|"
        r"doubt|mind|need for|going|been|had|saw|seen|knew|felt|thought|heard|"
        r"met|got|went|again will|in my|kidding|wonder|clue|thanks,|\w+ed)\b)",
        rf"\b{YOU} (?:keep|keep on) (?!up\b)\w+ing\b",
        rf"\b{YOU} (?:(?:don['’]?t|do not) (?:have|need) to|needn['’]t|can (?:drop|skip"
        rf"|stop|leave|omit|spare|cut)|must not|may not|should (?:not|never|at no))\b",
        rf"\b(?:no|ain['’]t no|isn['’]t any) need (?:for {YOU} )?to\b",
    ),
    stated=compile_any(
        # The effect of replies on the speaker.
        r"\bI (?:\w+ ){0,2}(?:find|understand|learn|follow|get|work|like|love|prefer|"
        r"enjoy) (?:it |things |\w+ )?(?:\w+ ){0,2}(?:easier|easiest|better|best|"
        r"more|most)\b.*\b(?:(?:when|if) you (?!are\b|were\b|see\b)|with each|in "
        r"your|explanation|from you)",
        rf"\b(?:long|short|big|dry|huge|your)\b.{{0,15}}\b{ANSWERS} (?:are|is) (?:too "
        rf"\w+|\w+) .{{0,20}}\bme\b",
        r"\bfrom you\b.*\b(?:for|to|with) me\b|\bfor me is\b.*\bfrom you\b",
        r"\bI (?:just |kinda |always )*(?:get lost|lose track|zone out|give up) "
        r"(?:in|with|at|when) (?:your|long)\b",
        r"^as a rule,? I (?:want|like|need|prefer|expect)\b",
        rf"\b(?:your|any|all|every) (?:\w+ ){{0,4}}?{ANSWERS}(?: \w+){{0,6}}? (?:should"
        rf"|must|shall|has to|have to|needs? to|(?:is|are) to)\b",
        rf"\bI(?:['’]d| would)? (?:also )?(?:like|want|need|prefer) (?:[^,;]{{1,60}} "
        r"(?:in|with|for) )?(?:(?:everything|all|any|each|every) (?:you|of your|your|"
        rf"{ANSWERS})|(?:dates|prices|temperatures|distances|numbers|times|amounts) "
        r"(?:in|with|as)\b)",
        rf"\bI (?:think|work|count|measure|cook) in {UNITS}\b",
        r"\b(?:ensure|make sure|(?:I|we) require)(?: that)? (?:all|every|each|any|no)\b"
        r"|\bfor me always\b",
        r"^(?:all|every|each) (?:dates?|prices?|figures?|numbers?|units?|times?|names?|"
        r"functions?|tests?) (?:you \w+ )?(?:should|must|(?:is|are) to)\b",
        rf"^{TONE} {ANSWERS}[.!]*$|^{UNITS}(?: clock)?,? (?:please|pls)[.!]*$"
        rf"|^one \w+ at a time",
        # Names.
        rf"\bI go by\b|\b(?:friends|everyone|everybody|people)\b.{{0,12}}\b(?:call "
        rf"me|say)\b.*\b{YOU} (?:can|may|could|should)\b",
        r"\b(?:it['’]s|I['’]m|name is|nmae is) (?:just )?(?-i:[A-Z])\w+, (?:not|no "
        r"?body|no one)\b|\bmy (?:name|nmae)(?:['’]s| is) \w+\b.*\b(?:you|u) can\b",
        # Forms that the speaker cannot use.
        r"\b(?:it|that) (?:\w+ )?(?:bugs|annoys|bothers|irritates|confuses|helps|"
        r"hurts|upsets|stresses|tires|distracts) me (?:\w+ )?(?:when|if) you\b|\bI "
        r"(?:hate|dislike|don['’]t like|can['’]t stand)(?: it)? (?:when|if|that|how) "
        r"you\b|\bI (?:like|prefer)(?: it)? (?:when|if) you\b",
        rf"\byour (?:\w+ )?(?:jokes|tone|style|examples|formatting|{ANSWERS}) (?:is|"
        rf"are|sounds?|feels?)\b[^,;]*[,;]|\byou (?:always|keep|constantly)"
        rf"\b[^,;]*[,;] (?:please )?(?:stop|don['’]t|quit)",
        r"\bI (?:do not|don['’]t|never|['’]d rather not) (?:want|like|wish|need|"
        r"care) (?:to be|being|any|your|for your|hearing|seeing|reading)\b",
        rf"^(?!.*\b(?:I['’]ll|I will|I['’]m going|going to|I (?:was|have been|"
        rf"started))\b)(?:.*[,;:—] ?|.{{0,40}}\b)?(?:in this (?:whole |entire )"
        rf"?(?:chat|conversation)|from (?:now|here) on(?: in| out)?,(?! (?:the|it|we|"
        rf"he|she)\b)|in (?:all |any )?(?:your|future|later) (?:\w+ )?{ANSWERS}|"
        rf"whenever you (?!want|can|like|need|feel|are|have|get)\w+)",
        rf"^(?:no more than|at most|max(?:imum)?|under) \w+ (?:options?|words|lines|"
        rf"sentences|points|bullets|paragraphs|{ANSWERS})\b",
        rf"\b(?:I|me)\b[^?]{{0,40}}\b(?:when|if) you (?:{VERBS}|jump|ramble|rambling|"
        rf"switch|go (?:step|on|off|too|slow)|change|over-?explain)",
        r"\bI (?:have|am|can['’]?t|don['’]?t|never|only|live)\b[^.?]{1,60}(?:\bso\b|"
        r",)(?: so)? (?:please )?(?:no (?!one|time|idea|prob|worr|need|matter|doubt|"
        r"longer)|nothing\b|only\b|keep\b|always\b)",
        # Without a verb: "metric always", "sources every time".
        r"^(?!I\b|we\b|he\b|she\b|it\b|they\b|this\b|that\b|you\b|why\b|how\b)"
        r"(?:[\w-]+,? ){1,4}(?:always|forever|every time|each time|only|from (?:now|nwo"
        r"|here)(?: on| out)?)(?: please| pls| thx| ok)?[.!]*$",
    ),
    lasting=compile_any(
        r"\b(?:always(?! (?:an?|the|good|nice|great|here|there|been|wanted|loved|had|"
        r"felt)\b)|alwyas|alwas|allways|(?<!you )ever|never|whenever|forever|henceforth"
        r"|hereafter|throughout|consistently|anymore|any more(?=$|[,.!])|anymroe)\b",
        rf"\b(?:every|evry|each)(?: ?time|(?: single)?(?: \w+)? {ANSWERS})\b|\bany "
        rf"?time\b",
        r"\bfrom (?:now|nwo|here|today|this (?:point|moment)|then) ?(?:on|out)",
        r"(?<!keep )\b(?:going|moving) forward\b|\bin (?:the )?future\b|\bfor "
        r"(?:good|ever)\b",
        r"\b(?:rest|remainder) of (?:this|our|the) (?:chat|conversation|talk)",
        r"\b(?:in|for|during) (?:this|our)(?: whole| entire)? (?:chat|conversation|"
        r"talks?)\b",
        r"\b(?!(?:an?d?|can|could|would|will|do|did|if|may|should|to|that|thank|when|"
        r"what|how|or)\b)\w+ you (?:draft|write|send|give|show|use|make|suggest|cite|"
        r"recommend|code)\b|\b(?:all|each|every|any)\b.*\b(?:for|to|with) me\b|\bdefaul"
        r"ts? to\b|\byour default\b|\bfrom today\b|\bin (?:all|any|every) (?:of )?my\b",
        rf"\b(?:in|for|of|with|at) (?:all|any|every|your|each) (?:\w+ )"
        rf"{{0,2}}{ANSWERS}\b",
        r"\b(?:when|if|wherever|anytime) (?:I|you|u|we|ye) (?:ask|answer|cite|code|"
        r"comment|correct|draft|explain|get|give|list|make|mention|name|quote|recommend"
        r"|refer|reply|review|say|show|speak|suggest|talk|teach|tell|use|write)\b",
        r"\b(?:when|if) (?:you['’]?re|you are|ur) (?:not |un)?(?:sure|certain)\b|\bfor "
        r"future reference\b",
        r"\b(?:at (?:all times|no (?:point|time)|any (?:point|time))|all the time|in "
        r"general|by default|under no circumstances|every (?:morning|day|night))\b",
    ),
    manner=compile_any(
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
        rf"\b(?:be|so|too|overly|less|more|being) {TONE}\b|\b{TONE} about my\b",
        r"\b(?:repeat|rephrase|restate|echo)\w* (?:my|what I|back|the question)",
        rf"\b{UNITS}\b|\bunits?\b",
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
        r"summari[sz]e|quote|translate)\b",
        r"\bso (?:many|much|often)\b|\b(?:never|don['’]?t|do not)\b.*\bagain\b|\bthe "
        r"(?:\w+ )?(?:stuff|talk|jokes|fluff|act|tone|drama|clich\w+|mode|voice|"
        r"persona)\b|\bneed(?:n['’]t)? (?:to )?(?:explain|tell me|greet|repeat|"
        r"apologi|justify|thank|introduce|remind)",
    ),
    style=compile_any(
        rf"\b(?:keep|keeping|make|making|limit|limiting) (?:all )?(?:your|the|ur) "
        rf"(?:\w+ )?{ANSWERS}\b",
        r"\b(?:call|address) me\b(?! (?:when|if|at|on|in|back|later|a\b|an\b|crazy|"
        r"after|tomorrow|tonight|soon|asap|old|up|out|maybe|any ?time|please|now|"
        r"to\b|for\b|and\b|first|once|before|or\b)\b)\W?\s*\w",
        r"\baddress me\b|\b(?:treat|roast|contradict|challenge) me\b|"
        r"\bremember\b.*\bI\b",
        rf"\b(?:swear|talk|speak|be (?:so |more |less |as )?{TONE}) (?:\w+ )"
        rf"{{0,2}}(?:with|to|wi) (?:me|us)\b",
        rf"\b(?:answer|reply|respond|speak|talk|chat)\b(?: \w+)?(?: to| with)?(?: me)"
        rf"? (?:in|auf|en) {TONGUES}\b|\blet['’]s (?:speak|use|stick to)"
        rf"\b.*(?:{TONGUES}|{UNITS})",
        rf"\b(?:use|stick to|switch to|give|in) (?:\w+ ){{0,2}}{UNITS}\b.*\b(?:for|with"
        rf"|when) (?:me|us|you)\b|\buse (?:my )?time ?zone\b",
        r"\b(?:keep|bear) (?:\w+ )?in mind\b|\bone question at a time\b|\bblunt\b",
        r"\bask(?:ed)? me (?:first|before)\b|\b(?:keep|make) (?:it|things|everything|"
        r"evrything) (?:to|short|simple|brief|under|civil|light|clean)\b|\bremember "
        r"(?:that|this|it) (?:for|when|in)\b",
        r"\bbefore you \w+|\bwhatever I\b|\binstead of (?:inventing|guessing|making|"
        r"assuming)|\buntil I (?:say|tell)\b|\bper (?:message|answer|reply|response)\b",
        SELF + SO,
        rf"[,;] (?:as |because |since )?{SELF}",
    ),
    reported=compile_any(
        rf"\b(?:he|she|they|who|{OTHERS}) (?:\w+ )?(?:{SAID}|requires|refuses|used to|"
        rf"goes|going to|never|always|hates?|likes?|prefers?)\b",
        r"^(?:and |so |but )?I(?:['’]ll| will|['’]m (?:going|gonna)| am going| plan| "
        r"started| was| have been|['’]ve been)\b",
        rf"\b(?!(?:you|I|we)\b)(?-i:[A-Z])\w+ (?:just |once |then )?(?:{SAID})\b",
        r"\b(?:told|asked|asks|tells|telling|begged|taught|made|wants) (?:me|us|him|"
        r"her|them|my \w+|people|everyone)\b",
        r"\bI(?:['’]ve)? (?:told|asked|read|heard|wrote to) (?!you\b|u\b|for\b)\w+",
        r"\b(?:what|why|how|whether|who|which|where) (?!you\b|I (?:say|write|ask|"
        r"need|want|expect|like|prefer))\w+",
        # Irony, and orders to things and to others.
        r"^(?:great|sure|nice|lovely|right|yeah),? (?:always|never)\b",
        rf"^(?:the|this|our|guests|employees|staff) (?!{ANSWERS}|{TONE}|dates?\b|"
        rf"prices?\b|figures?\b|units?\b|tone\b|language\b)(?:\w+ ){{1,3}}(?:must|"
        r"should|shall|has to|have to|insists?|are requested)\b",
        r"\b(?:used to|policy|guideline|contract|agreement|manual|employees|applicants|"
        r"parties|students)\b",
    ),
    once=compile_any(
        rf"\b(?:this|that) (?:one|time|once|bit|part|sentence|word|letter|e?-?mail|"
        rf"paragraph|recipe|chapter|file|line|code|function|photo|picture|list|song|"
        rf"poem|story|page|section|last|first|{ANSWERS})\b(?!.*\b(?:later|all)\b)",
        r"\b(?<!for )(?:the|that|your|his|her|its) (?:last|first|second|third|next|"
        r"previous|attached|final) (?!ma?n|name|version|person)\w+",
        r"\b(?:for now|just now|right now|today|tonight|tomorrow|once more|one more|"
        r"try again|just once|for once|a moment|(?:a )?(?:wee )?bit (?:shorter|"
        r"longer))\b",
        r"\b(?:translate|shorten|check|summari[sz]e|rewrite|fix|correct|read|explain|"
        r"put|make|answer) (?:this|that|it)\b|\bthis\s*[?.!]*$|\b(?:above|below|"
        r"attached)\b",
        r"\bdon['’]?t tell me (?:it|he|she|they|that|we)\b|\blet me know\b|\b(?:line"
        r"|step|page|chapter|question|number) \d",
        # A single text is wanted, not a rule.
        r"^(?:please |kindly |can you |could you |would you )*(?:write|draft|compose|"
        r"make|create|generate|translate|invent|give me|tell me|help) (?:\w+ )?(?:a|"
        r"an|the|my|some|about|how|what|why|who|if) (?!short|main|answer|result|"
        r"reason|easy)",
        r"\b(?:never|don['’]?t) (?:ever )?(?:give up|quit|stop|lose|forget (?:to|"
        r"that|how)|have to (?:win|worry|be perfect|do)|let |worry|hesitate|be "
        r"afraid|take )",
    ),
    requests=compile_any(
        rf"\b(?:can|could|would|will|might|may) (?:could )?{YOU}\b",
        r"\b(?:may|can|could) I (?:please )?(?:ask|beg|trouble) you\b",
        r"\bwould it bother you\b|\bmight I\b|\bwould it be \w+ (?:for|if) you\b",
        r"\b(?:can|could|shall) we\b|,? (?:aye|ok|okay|yeah|right|alright|please"
        r"|hor)\?$",
    ),
)
