"""Made-up conversations in which each message states a fact, in English and Chinese.

The templates of UNSEEN were written together with those of SEEN, before the ranker was
changed by SEEN alone. Those of FRESH were written before the misses in UNSEEN were
seen, and those of LAST before the results of FRESH were seen: each judges once.
"""

import random
from collections.abc import Iterator
from datetime import timedelta

from memory.evaluation.replay import (
    RecordedConversation,
    RecordedMessage,
    RecordedQuestion,
)

from .conversations import STARTED

# What the other side says to each fact; "": it states facts itself.
REPLIES = {"en": ("", "Noted.", "Thanks, I will keep that in mind for later.")}
REPLIES["zh"] = ("", "好的。", "谢谢，我先记下来，以后会用到的。")
QUESTIONS = 100
MINE = {"en": "my ", "zh": "我"}

VALUES = {
    "en": {
        "who": "sister brother aunt uncle cousin niece nephew boss neighbour grandma",
        "thing": "loom canoe kiln telescope piano bicycle lamp carpet tent violin",
        "place": "attic garage cellar office shed kitchen hallway workshop",
        "city": "Porto Tartu Ghent Osaka Valdivia Galway Pula Bergen Lyon Kyoto",
        "food": "peanuts celery mustard shrimp lupin sesame walnuts barley",
        "job": "baker nurse welder pilot clerk tailor farmer surveyor",
        "pet": "Biscuit Pepper Comet Olive Ziggy Maple Pixel Tango",
        "colour": "red green blue yellow grey violet orange brown",
        "sport": "judo yoga fencing rowing tennis climbing ballet boxing",
        "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "car": "Volvo Skoda Fiat Saab Toyota Renault Mazda Subaru",
        "n": "20 35 48 60 75 90 120 240 310 450",
        "time": "6:10 7:25 8:40 9:15 11:05 13:30 17:45 21:20",
        "teacher": "Hale Okafor Lindgren Moreau Sato Kowalski Brandt Silva",
    },
    "zh": {
        "who": "姐姐 哥哥 姑姑 叔叔 表弟 侄女 外甥 老板 邻居 奶奶",
        "thing": "自行车 望远镜 钢琴 帐篷 地毯 台灯 小提琴 缝纫机 吉他 相机",
        "place": "阁楼 车库 地下室 办公室 厨房 走廊 阳台 书房",
        "city": "成都 苏州 青岛 昆明 厦门 西安 大连 杭州 桂林 拉萨",
        "food": "花生 芹菜 芥末 虾 芝麻 核桃 牛奶 鸡蛋",
        "job": "护士 厨师 司机 会计 裁缝 律师 木匠 记者",
        "pet": "豆豆 毛毛 可乐 布丁 小黑 雪球 团团 旺财",
        "colour": "红色 绿色 蓝色 黄色 灰色 紫色 橙色 棕色",
        "sport": "柔道 瑜伽 击剑 划船 网球 攀岩 芭蕾 拳击",
        "day": "星期一 星期二 星期三 星期四 星期五 星期六 星期日",
        "car": "大众 本田 丰田 福特 奥迪 吉利 马自达 雪铁龙",
        "n": "20 35 48 60 75 90 120 240 310 450",
        "time": "六点十分 七点半 八点四十 九点一刻 十一点 下午一点 傍晚六点 晚上九点",
        "teacher": "高老师 林老师 何老师 郭老师 罗老师 郑老师 谢老师 唐老师",
    },
}

SEEN = {
    "en": [
        ("{who} keeps the {thing} in the {place}.", "Where is the {thing} of {who}?"),
        ("{who} was born in {city}.", "What is the town of birth of {who}?"),
        ("{who} is allergic to {food}.", "What should {who} not eat?"),
        ("{who} paid {n} euros for a {thing}.", "How much was {who}'s {thing}?"),
        ("{who} works as a {job}.", "What does {who} do for work?"),
        ("{who}'s dog is called {pet}.", "What is the name of {who}'s dog?"),
        ("{who} has {sport} every {day}.", "When does {who} do {sport}?"),
        ("{who}'s {thing} is {colour}.", "Which colour has the {thing} of {who}?"),
    ],
    "zh": [
        ("{who}把{thing}放在{place}。", "{who}的{thing}放在哪里？"),
        ("{who}出生在{city}。", "{who}是在哪里出生的？"),
        ("{who}对{food}过敏。", "{who}不能吃什么，对什么过敏？"),
        ("{who}花了{n}元买{thing}。", "{who}买{thing}花了多少钱？"),
        ("{who}的工作是{job}。", "{who}做什么工作？"),
        ("{who}的狗叫{pet}。", "{who}的狗叫什么名字？"),
        ("{who}每个{day}去上{sport}课。", "{who}哪天上{sport}课？"),
        ("{who}的{thing}是{colour}的。", "{who}的{thing}是什么颜色？"),
    ],
}
UNSEEN = {
    "en": [
        ("{who} got married in {city}.", "In which city was {who} married?"),
        ("{who} drives a {colour} {car}.", "What does {who} drive?"),
        ("{who} owes the {job} {n} euros.", "How much money does {who} owe the {job}?"),
        ("{who} is learning {sport} from Mr {teacher}.", "Who teaches {who} {sport}?"),
        ("{who}'s train leaves at {time}.", "What time does the train of {who} leave?"),
        ("{who} can't stand {food}.", "Which food does {who} dislike?"),
        ("{who} lent a {thing} to {teacher}.", "To whom did {who} lend the {thing}?"),
        ("On {day} {who} cleans the {place}.", "When is {who} cleaning the {place}?"),
    ],
    "zh": [
        ("{who}在{city}结的婚。", "{who}是在哪个城市结婚的？"),
        ("{who}开一辆{colour}的{car}。", "{who}开什么车？"),
        ("{who}欠{job}{n}块钱。", "{who}欠{job}多少钱？"),
        ("{who}跟{teacher}学{sport}。", "谁教{who}{sport}？"),
        ("{who}的火车{time}开。", "{who}的火车几点开？"),
        ("{who}不喜欢{food}。", "{who}不喜欢吃哪种东西？"),
        ("{who}把{thing}借给了{teacher}。", "{who}的{thing}借给了谁？"),
        ("{who}{day}打扫{place}。", "{who}什么时候打扫{place}？"),
    ],
}
FRESH = {
    "en": [
        ("{who} moved from {city} last year.", "Which city did {who} move away from?"),
        ("I gave {who} a {colour} {thing}.", "What did I give to {who}?"),
        ("{who}'s {job} charges {n} euros.", "What does the {job} of {who} charge?"),
        ("{who} always parks the {car} at {time}.", "When does {who} park the {car}?"),
        ("{who} hides sweets in the {place}.", "Where are the sweets of {who} hidden?"),
        ("{teacher} is the dentist of {who}.", "What is {who}'s dentist called?"),
        ("{who} hurt a knee at {sport}.", "How was the knee of {who} hurt?"),
        ("{who} cooks with {food} on {day}.", "What does {who} cook with on {day}?"),
    ],
    "zh": [
        ("{who}去年从{city}搬走了。", "{who}是从哪个城市搬走的？"),
        ("我送了{who}一个{colour}的{thing}。", "我送给{who}什么东西？"),
        ("{who}请的{job}收费{n}元。", "{who}请的{job}收费多少？"),
        ("{who}总是{time}停好{car}。", "{who}几点停{car}？"),
        ("{who}把糖藏在{place}。", "{who}的糖藏在哪儿？"),
        ("{who}的牙医是{teacher}。", "{who}的牙医叫什么？"),
        ("{who}练{sport}伤了膝盖。", "{who}的膝盖是怎么伤的？"),
        ("{who}{day}用{food}做饭。", "{who}{day}用什么做饭？"),
    ],
}
LAST = {
    "en": [
        ("{who} broke the {thing} on {day}.", "When was the {thing} of {who} broken?"),
        ("{who} has run a shop in {city} for years.", "Where does {who} run a shop?"),
        ("{who} chose {colour} curtains.", "What curtains has {who} chosen?"),
        ("{who} wakes up at {time}.", "What time does {who} wake?"),
        ("{who} sold the {car} for {n} euros.", "What did {who} get for the {car}?"),
        ("{who} won a prize in {sport}.", "In which sport did {who} win a prize?"),
        ("Dr {teacher} operated on {who}.", "By which doctor was {who} operated on?"),
        ("{who} feeds {pet} in the {place}.", "Where is {pet} fed by {who}?"),
    ],
    "zh": [
        ("{who}{day}把{thing}弄坏了。", "{who}的{thing}是哪天弄坏的？"),
        ("{who}在{city}开店好多年了。", "{who}的店开在哪里？"),
        ("{who}选了{colour}窗帘。", "{who}的窗帘选的什么颜色？"),
        ("{who}每天{time}起床。", "{who}几点起的床？"),
        ("{who}的{car}卖了{n}块钱。", "{who}卖{car}卖了多少？"),
        ("{who}得过{sport}的奖。", "{who}得的是什么奖？"),
        ("{teacher}给{who}动过手术。", "谁给{who}动的手术？"),
        ("{who}在{place}喂{pet}。", "{who}在哪儿喂{pet}？"),
    ],
}
HALVES = {"seen": SEEN, "unseen": UNSEEN, "fresh": FRESH, "last": LAST}


def make_facts(half: str) -> list[RecordedConversation]:
    """A conversation for each language and each kind of reply, with the same facts."""
    return [
        _make(f"facts-{half}-{language}-{number}", language, half, reply)
        for language, replies in REPLIES.items()
        for number, reply in enumerate(replies)
    ]


def _make(name: str, language: str, half: str, reply: str) -> RecordedConversation:
    chance = random.Random(f"{half} {language}")
    told = [*_state(language, half, chance)]
    chance.shuffle(told)
    messages, questions = [], []
    for fact, question in told:
        questions.append(
            RecordedQuestion(question=question, evidence_ids=[f"{len(messages)}"])
        )
        for text in filter(None, (fact, reply)):
            messages.append(
                RecordedMessage(
                    id=f"{len(messages)}",
                    role=("user", "assistant")[len(messages) % 2],
                    content=text,
                    created_at=STARTED + timedelta(hours=len(messages)),
                )
            )
    asked = chance.sample(questions, QUESTIONS)
    return RecordedConversation(id=name, messages=messages, qa=asked)


def _state(
    language: str, half: str, chance: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield facts of each form about each name: statement and question."""
    values = {name: text.split() for name, text in VALUES[language].items()}
    for statement, question in HALVES[half][language]:
        for who in values["who"]:
            chosen = {name: chance.sample(some, 4) for name, some in values.items()}
            # Only one where the question does not name what differs between two.
            named = [n for n in values if n != "who" and f"{{{n}}}" in question]
            for number in range(4 if named else 1):
                filled = {name: four[number] for name, four in chosen.items()}
                filled["who"] = MINE[language] + who
                yield statement.format(**filled), question.format(**filled)
