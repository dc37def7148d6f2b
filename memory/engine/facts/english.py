"""Facts about the speaker in English."""

import re

from ..rules.grammar import FactGrammar, compile_any

NAME = r"(?-i:[A-Z][\w'’.-]+)"
NUMBER = (
    r"(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|several|many)"
)
OFTEN = (
    r"(?:(?:also|now|currently|still|mostly|mainly|usually|always|only|often|really"
    r"|just|both|actually|originally) )?"
)
AM = rf"I(?: am|['’]?m) {OFTEN}"
HAVE = rf"(?:I|we)(?: have| have got|['’]?ve got| got) {OFTEN}"
NOT = r"I (?:don['’]?t|do not|never|no longer|can['’]?t|cannot|(?:can not|not can)) "
# Of whom one speaks as of oneself: those of the same household.
FAMILY = (
    r"(?:my|our) (?:\w+ )?(?:wife|husband|partner|boyfriend|girlfriend|sons?|kids?"
    r"|daughters?|child(?:ren)?|grandson|granddaughter|dog|cat|team)(?: (?:she|he"
    r"|they))?"
)
ROLE = (
    r"(?:mother|father|parent|grand(?:mother|father)|widow(?:er)?|veteran|pensioner"
    r"|nurse|doctor|lawyer|student|vegan|vegetarian|diabetic|(?:teach|farm|driv|program"
    r"|develop|engine|garden)e?er|musician|beginner|single \w+)"
)

HEALTH = (
    r"asthma|diabetes|type [12]|adhd|add|autism|epilepsy|arthritis|migraines?|eczema"
    r"|c(?:o)?eliac|dyslexia|tinnitus|anxiety|depression|insomnia|hay fever"
    r"|(?:high|low) blood pressure|heart (?:condition|disease)|allerg(?:y|ies)"
    r"|(?:bad|weak|sore|sensitive) (?:knees?|back|hips?|shoulders?|stomach|skin|eyes?)"
    r"|flat feet|food intolerances?"
)
KIN = (
    r"(?:grand)?(?:child(?:ren)?|kids?|sons?|daughters?)|brothers?|sisters?|siblings?|"
    r"girls|boys|twins|triplets|husband|wife|partner|boyfriend|girlfriend|family"
)
PETS = (
    r"dogs?|cats?|pupp(?:y|ies)|kittens?|\w+ retriever|horses?|mare|pon(?:y|ies)"
    r"|parrots?|rabbits?"
    r"|hamsters?|guinea pigs?|goldfish|tortoises?|chickens?|hens|goats|sheep|bees"
    r"|collies?|terriers?|labradors?|retrievers?|poodles?|spaniels?|dachshunds?|pets?"
)
THINGS = (
    r"cars?|houses?|flats?|apartments?|gardens?|allotments?|balcony|boats?|narrowboats?"
    r"|pianos?|guitars?|violins?|motor(?:bikes?|cycles?)|bikes?|bicycles?|kitchens?|"
    r"televisions?|tv|ovens?|dishwashers?|smartphones?|driving licen[cs]es?|lifts?|"
    r"degrees?|phd|doctorate|master['’]?s|mba|(?:curly|straight|long|short|red|blond\w*"
    r"|grey|dark|thin|thick|no) hair|(?:blue|green|brown) eyes|jobs?|shop|farm|bakery"
)
# A few words may stand before what matters.
SOME = r"(?:[\w'’-]+ ){0,4}?"

FACTS = compile_any(
    # Who I am.
    rf"{AM}(?:called |named )?{NAME}(?![\w ]*\?)",
    rf"{AM}(?:an?|the) (?!bit\b|little\b|lot\b|few\b|tad\b|huge\b|big fan|fan\b|step\b"
    r"|loss\b|sea\b|mess\b|minute|wrong|right|only one|first to|one who|same|admin"
    r"|root\b|super ?user|bot\b|victim|point)",
    rf"{AM}(?:half|part|almost|nearly|about|over|around)? ?\d[\d.]* ?(?:$|[,.;!]"
    r"|(?:and|btw|lol|now|years?|m|cm|metres?|meters?|feet|kilos?|kg)\b)",
    rf"{AM}(?:almost |nearly |about |over )?{NUMBER} (?:m|metres?|feet|years)\b",
    rf"{AM}half {NAME}",
    rf"{AM}(?:a )?(?:strict )?(?:vegetarian|vegan|pescatarian|teetotal|all?ergic "
    rf"(?!reaction)|(?:lactose|gluten)[- ]intolerant|intolerant|diabetic|pregnant|"
    rf"retired|married|single|divorced|widowed|engaged to|(?:left|right)-handed|deaf|"
    rf"blind|hard of|colou?r-?blind|(?:short|near|far|long)-?sighted|dyslexic|autistic|"
    rf"disabled|bilingual|multilingual|self-\w+|unemployed|fluent in|employed|"
    rf"licen[cs]ed|certified|qualified|freelanc\w+|jewish|muslim|hindu|buddhist|"
    rf"christian|catholic|gay|lesbian|bisexual|trans\b|non-?binary)",
    rf"{AM}(?:based in|from (?!the start|page)|born|expecting|training for|learning|"
    rf"studying|doing (?:an?|my) (?!test|best|part)|writing my (?:thesis|dissertation)|"
    rf"raising my|caring for my|on (?:call|insulin|medication)\b|(?:living|working) "
    rf"(?:as|like|in|at|for) (?!(?:it|this|that|the (?:text|code|file)|an? (?:minute|"
    rf"hour))\b)|always \w+(?=\W*$)|on a (?:\w+ )?budget)",
    rf"{AM}in (?:my (?:first|second|third|fourth|fifth|final|last) year"
    r"|the [\w ]{2,20}time ?zone|my (?:\w+ties|teens)\b)",
    # Where and how I live.
    rf"(?:I|we) {OFTEN}(?:live|reside) (?:in|at|on|near|just|outside|alone|with|here"
    r"|between|off|abroad|by the)\b(?! hope| fear| peace)",
    r"(?:I|we)(?:['’]?ve| have) (?:lived|worked|been (?:an?|in|\w+ing(?! on))|had)\b"
    r"(?=.*(?:\bfor\b.*\byears|\bsince\b|\bin (?-i:[A-Z])))"
    r"(?!.*\b(?:hours?|minutes?|your|morning|this)\b)",
    rf"I moved (?:here|to {NAME})",
    r"I (?:grew up|was (?:born|raised|brought up)|come from|hail from|immigrated"
    r"|emigrated|suffer from|retired|graduated|majored|go by|identify as|serve on"
    r"|(?:just )?turned (?:\d|\w+ty)|lost my (?:sight|hearing|leg|arm)|walk with an?"
    r"|did my (?:degree|phd|master|studies|training))\b",
    r"I follow an? [\w-]+ (?:diet|faith|religion)",
    # What I do.
    rf"I {OFTEN}(?:work|freelance) (?:as|at|for|in|from|with|nights|shifts|remotely"
    r"|part|full|weekends|days)\b",
    rf"I {OFTEN}(?:study|teach) (?!you\b|your\b|the\b|this\b|that\b|it\b|an?\b)\w",
    rf"I {OFTEN}play (?:the )?(?:piano|cello|violin|viola|guitar|bass|drums|flute|oboe"
    r"|clarinet|trumpet|trombone|horn|saxophone|organ|harp|accordion|football|soccer"
    r"|tennis|chess|golf|rugby|hockey|basketball|volleyball|cricket|badminton|squash"
    r"|bridge|poker|goalkeeper|in an?|for an?)\b",
    rf"I {OFTEN}(?:drive|ride) (?:an?|my) ",
    rf"I {OFTEN}(?:run|own|manage|coach|lead|head) (?:an?|my own|{NUMBER})"
    r" (?!script|test|quer|command|program|loop|search|scan|mistake|risk|server)",
    rf"(?:I|we) {OFTEN}keep (?:{NUMBER} )?(?:{PETS})\b",
    r"I go \w+ing (?:every|once|twice|on \w+days|a lot)\b",
    r"I hold (?:an?|both) (?:[\w-]+ ){0,2}(?:degree|phd|doctorate|master|licen[cs]e"
    r"|passport)",
    r"I have \d{2} years\b|(?<=as )an? " + ROLE + r"\b",
    rf"I {OFTEN}(?:collect|commute|volunteer|knit|sing|swim|cycle|jog|paint|garden"
    r"|ski|surf|climb|dance|meditate)\b",
    rf"I {OFTEN}speak {SOME}(?:{NAME}|polish|english|german|french|spanish|at home)",
    rf"I {OFTEN}(?:(?:code|program|develop) in|write (?:most of |all of )?my code in)",
    rf"I {OFTEN}use (?:an? )?{NAME}",
    r"I(?:['’]?ve| have) (?:just turned|been (?:sober|single|married|divorced|retired"
    r"|deaf|blind|diabetic|vegan|vegetarian))\b|I wear (?:glasses|contacts"
    r"|contact lenses|hearing aids?|an? hearing|size)",
    # What I have.
    rf"{HAVE}{SOME}(?:{HEALTH}|{KIN}|{PETS}|{THINGS})\b(?!['’])",
    rf"{NOT}(?:have|own) (?:an?|any) (?:{KIN}|{PETS}|{THINGS})\b",
    # Those I live with, and what is mine.
    rf"{FAMILY} (?:is|are) (?:(?:called|named|from|allergic|an?|married|retired|deaf|"
    rf"blind|autistic|dyslexic|diabetic|disabled|vegan|vegetarian)\b(?! (?:bit|little|"
    rf"mess|pain|angel|few|joy))|{NAME}|{NUMBER} (?:people|years)|\d+ ?(?:$|[,.;!])|"
    rf"{NUMBER}[.,!]*$)",
    rf"{FAMILY} (?:has|have) {SOME}(?:{HEALTH})\b",
    r"my (?:home|own|main) (?:server|laptop|phone|car|bike|camera) (?:is|runs) ",
    # Without a subject, as a whole sentence.
    r"(?:^|(?<=: ))(?:(?:always )?been (?:an? )?(?:vegetarian|vegan|teetotal|deaf|"
    r"blind|single)|not a (?:big |huge )?fan of|(?:don['’]?t|never) (?:drink|eat|"
    r"smoke|drive)|(?:hate|love|can['’]?t stand) (?!(?:this|that|it|how|when|to|the|"
    rf"your|you)\b)|live (?:alone|with my|in {NAME})|(?:born )?(?:in|from) {NAME} "
    r"?(?:originally)?[.!]*$|work (?:as|nights|for|in an?)|(?:no|without a) (?:driving"
    r" licen[cs]e|car|oven|kids|pets|lift|garden)[.!]*$|(?:left|right)-handed|type "
    rf"[12] diabetic|name['’]s {NAME}|(?:vegan|vegetarian|married|retired|widowed|"
    rf"divorced)\b(?! \w+s\b)|{NUMBER} (?:kids|children|dogs|cats)\b(?! \w+ed\b))",
    # What I eat and like.
    rf"{NOT}(?:eat|drink|smoke|tolerate|digest|drive|swim|cycle|celebrate)\b"
    r"(?! (?:this|that|it|another)\b)",
    rf"{NOT}have (?:dairy|gluten|milk|nuts|sugar|caffeine|alcohol|lactose|wheat|eggs)",
    rf"I {OFTEN}(?:love|like|enjoy|hate|dislike|prefer|adore|can['’]t stand|loathe)"
    r" (?!(?:it|this|that|these|those|your|the|how|what|when|where|you|to|not|an?|them"
    r"|if|both|my|her|his|their|its|him|us|all|each|every|also|such|being|seeing|making"
    r"|getting|having)\b|option|version|number)[\w'’-]+",
    # What is mine.
    r"my (?:full |first |last |middle )?(?:name|nickname|birthday|pronouns|job|professi"
    r"on|occupation|mother tongue|(?:first|native|home) language|time ?zone|home ?town|"
    r"hobb(?:y|ies)|religion|blood type|height|weight|age|shoe size|budget|nationality|"
    r"degree|major|diet|(?:house|flat|apartment|home)) (?:is|are|was built|has)\b",
    r"my favou?rite [\w ]{2,30} (?:is|are)\b",
    r"my (?:husband|wife|partner|boyfriend|girlfriend|family|kids|children) and I"
    r" (?:both )?(?:live|have|own|are|run|speak|work|keep|drive|don['’]t|never|love"
    r"|share)\b",
)

ENGLISH = FactGrammar(
    clauses=re.compile(
        r"(?:^|[,;:–—(]\s*|\b(?:because|since|but|and|so|as) (?=I\b|my\b|we\b))(?:(?:hi"
        r"|hello|hey|thanks|thank you|ugh+|argh|lol|haha|hm+|um+|yeah|yes|look|sorry|"
        r"honestly|tbh|basically|oh|(?:(?:please )?(?:keep|bear) in mind|(?:perhaps |"
        r"maybe )?I (?:should|must|may|can) (?:say|add|mention|admit|explain)|may I add"
        r"|let me add|I hope it['’]?s useful to know|it may help to know|I told you)"
        r"(?: that)?|if it helps|well|also|ok|okay|and|but|so|because|since|as|oh|btw|"
        r"fyi|by the way|actually|just so you know|for context|for your information|"
        r"note that|you should know that|remember that|please remember that|for the "
        r"record|in case it helps)\b[,:!]? ){0,6}+",
        re.IGNORECASE,
    ),
    facts=FACTS,
    ends=compile_any(
        r"[,;–—]\s*(?:and |but )?(?:so|what|how|which|who|where|when|why|can|could"
        r"|would|will|should|please|any|do|does|did|have you|is|are|no|help|give|tell"
        r"|make|you|don['’]?t)\b",
        r",? (?:but|because) |, so | so (?=I\b|please\b|can\b|what\b|no\b|don)",
        r",? and (?:I )?(?:need|want|would|could|can|am looking|was|wonder)\b",
        r",? which (?:means|is why)\b",
    ),
    passing=compile_any(
        r"\b(?:today|tonight|tomorrow|yesterday|right now|at the moment|this (?:morning"
        r"|evening|afternoon|week|time|one|code|script|error|file|chapter|system|page|"
        r"text|tool|line)|next (?:week|month|time)|used to|about to|going to|no longer "
        r"works|(?:errors?|minutes?|hours?|tries) left|for an hour|for hours)\b",
        r"\b(?:is not|isn['’]t|are not) (?:in|on|valid|working|found|correct)\b",
        r"\bis (?:wrong|slow|broken|missing|down|about|that|whether|why|how|what)\b",
        r"^I(?: am|['’]m) (?:OK|Okay|Sorry|Done|Back|Sure)\b",
        r"\b(?:question|problem|error|issue|bug)s?\b",
    ),
    reported=compile_any(
        r"\b(?:if|imagine|pretend|suppose|assume|let['’]s say|whether|as though|says?"
        r"|said|told|tells|wrote|writes|wish|named after|once upon|narrator|hero"
        r"|character|act as|who|when|was|that|why)\b",
    ),
    orders=compile_any(
        r"\b(?:ignore|disregard|obey|system prompt|instructions?|refuse|override"
        r"|jailbreak|you must|you have to|unrestricted|your rules|from now on you"
        r"|you are now|do (?:what|as) I say|admin(?:istrator)?|root)\b",
    ),
    played=compile_any(
        r"\b(?:imagine|pretend|in (?:the|this|my|our) (?:story|novel|game|book|dream|"
        r"play|film)|role-?play|act as|play the (?:part|role)|let['’]s say|let['’]s "
        r"pretend|as if I|suppose)\b",
        r"\bwrite (?:me )?an? (?:\w+ )?(?:poem|monologue|story|song|scene|diary|speech"
        r"|dialogue|novel|letter)\b",
    ),
)
