"""Made-up lists of facts in Chinese: neighbouring messages have no common subject.

The half "unseen" has other people, facts and questions than "seen". It is for reports
alone.
"""

import random
from datetime import timedelta
from itertools import product

from memory.evaluation.replay import (
    RecordedConversation,
    RecordedMessage,
    RecordedQuestion,
)

from .conversations import STARTED

SEED = 7
WHO = {
    "seen": "小周 老韩 林阿姨 房东 表姐 隔壁王叔 阿强 陈医生 二舅 班长 小杜 保姆 阿兰 "
    "赵会计 师傅 老同学",
    "unseen": "大姑 吴老师 室友 小马 楼上邻居 徐经理 外公 丽丽 三婶 队长 小贺 司机 "
    "阿梅 孙律师 徒弟 老战友",
}
# A fact, and the question about it in other words.
WHAT = {
    "seen": (
        "{}在{}上班|{}的工作单位在哪儿？",
        "{}养了一只叫{}的猫|{}的宠物叫什么？",
        "{}最爱吃{}|{}喜欢什么菜？",
        "{}的车停在{}|{}把车停哪儿了？",
        "{}下个月要搬去{}|{}准备搬到哪里？",
        "{}在学{}|{}最近学什么？",
        "{}怕{}|{}害怕的东西是什么？",
        "{}的密码提示是{}|{}的密码提示是什么？",
    ),
    "unseen": (
        "{}的生意是卖{}的|{}做什么买卖？",
        "{}的女儿叫{}|{}的孩子叫什么名字？",
        "{}过敏的是{}|{}对什么过敏？",
        "{}的钥匙放在{}|{}的钥匙在哪里？",
        "{}退休后想去{}|{}退休了打算去哪儿？",
        "{}会弹{}|{}会什么乐器？",
        "{}讨厌{}|{}最不喜欢什么？",
        "{}小时候住在{}|{}童年在哪里度过？",
    ),
}
SYLLABLES = "青山石桥云门白鹿南塘竹里东篱海棠松风玉泉"


def make_list(half: str) -> list[RecordedConversation]:
    chance = random.Random(SEED)
    pairs = [*product(WHO[half].split(), WHAT[half])]
    chance.shuffle(pairs)
    messages: list[RecordedMessage] = []
    questions: list[RecordedQuestion] = []
    for day, (who, what) in enumerate(pairs):
        fact, question = what.split("|")
        told = f"{fact.format(who, ''.join(chance.sample(SYLLABLES, 3)))}。"
        for role, text in (("user", told), ("assistant", "记下了。")):
            at = STARTED + timedelta(days=day)
            id_ = f"{role}-{day}"
            messages.append(
                RecordedMessage(id=id_, role=role, content=text, created_at=at)
            )
        asked = question.format(who)
        questions.append(RecordedQuestion(question=asked, evidence_ids=[f"user-{day}"]))
    return [RecordedConversation(id=half, messages=messages, qa=questions)]
