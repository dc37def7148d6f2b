"""Questions about many messages, in both languages."""

import pytest

from memory.engine.search.breadth import FEW, LINES, MANY, find_breadth, find_subject
from memory.engine.search.ranking import read_query

LONG = (
    "In which order did I bring up the parts of my garden? List the order in which.",
    "Can you list the order in which I brought up my garden? Mention ONLY five items.",
    "How did my garden develop over time?",
    "Can you sum up how the beds changed over time?",
    "How has my garden evolved since spring?",
    "Can you summarize how I planned the garden?",
    "How many different plants have I mentioned?",
    "How many total plants do I have in the garden?",
    "How many beds did I mention across my messages?",
    "In my questions about soil, what did I want to know?",
    "请按时间列出我说过的花园的事",
    "我们先后聊过花园的哪些事？",
    "总结一下我们关于花园的对话",
    "帮我梳理我提到的植物",
    "我学钢琴的历程是怎样的？",
    "概括一下我们聊过的装修",
    "整理一下我的旅行计划",
)
WIDE = (
    "Which plants did I buy?",
    "How many days were between sowing and harvest?",
    "How often did I water the roses?",
    "How many different species of penguins are there?",
    "Considering my soil, my budget, and the short summer, how should I plant?",
    "Given my plans for the pond and the shed, what should I build first?",
    "Hello. Given our visits to both nurseries, which one is cheaper?",
    "Based on what I planted, what could I add?",
    "Taking into account my back and my schedule, how can I keep the beds tidy?",
    "Give me a summary of the plants and tools we've talked about for the beds.",
    "Can you provide a detailed summary of everything that I did in the garden?",
    "Give me an overview of the entire work that I put into the pond.",
    "In what ways have I used the compost?",
    "What have I planted?",
    "Back again.\nWhat have I planted?",
    "What has Anna planted?",
    "Give me a recap of our visits to nurseries.",
    "Where has Anna bought seeds?",
    "Have I ever grown tomatoes?",
    "Has Anna ever been to the pond?",
    "How might the shade and the wall affect the roses?",
    "How did my trips affect the roses?",
    "How does the old mower compare to the new one?",
    "How do I balance watering with my trips?",
    "What do the fence and the gate cost in total?",
    "花园里有哪些植物？",
    "我浇了几次水？",
    "考虑到我的预算和土壤，该怎么种？",
    "根据我说过的计划，先建什么？",
    "结合我们去过的苗圃，哪家便宜？",
    "我种过什么？",
    "我有没有去过那家苗圃？",
    "比较一下两家苗圃",
    "安娜去过哪儿买种子？",
    "我以前有没有种过番茄？",
    "遮阴和围墙对玫瑰有什么影响？",
    "旧割草机和新的相比怎么样？",
    "篱笆和大门加起来多少钱？",
)
SINGLE = (
    "Where did I buy the rake?",
    "What is the name of the puppy?",
    "In order to plant roses, what do I need?",
    "How do I change my password?",
    "How did I change my password?",
    "What do I have to do today?",
    "Who has given my rake back?",
    "When did I last comb the lawn?",
    "How tall is the wall?",
    "How do I compare two strings in Python?",
    "How do I combine two lists",
    "how can I balance a binary tree",
    "How does sleep affect memory?",
    "What has changed in Django 5?",
    "Write a recap email",
    "combined cycle engine efficiency",
    "Where is the rake that I have bought?",
    "根据说明书，这个怎么用？",
    "这本书过时了吗？",
    "我比较喜欢蓝色",
    "通过什么方法",
    "难过什么",
    "经过哪座桥",
    "护照是否过期",
    "是否超过",
    "有没有通过考试",
    "根据我国法律",
    "咖啡对睡眠有影响吗？",
    "耙子是在哪里买的？",
    "小狗叫什么名字？",
)


@pytest.mark.parametrize(
    ("question", "breadth"),
    [
        *((each, LINES) for each in LONG),
        *((each, MANY) for each in WIDE),
        *((each, FEW) for each in SINGLE if "order" not in each),
    ],
)
def test_breadth_is_read_from_the_question(question, breadth):
    assert find_breadth(question) is breadth


def test_order_to_do_something_is_no_question_about_an_order():
    assert find_breadth(SINGLE[2]) is not LINES


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        (LONG[1], {"garden"}),
        ("Walk me through how my budget app developed over time.", {"budget", "app"}),
        ("请按时间顺序列出我说过的花园", {"花园"}),
        ("总结一下我们关于花园的对话", {"关于", "于花", "花园", "关于花园"}),
    ],
)
def test_words_for_the_task_are_not_searched_for(question, terms):
    found = set(read_query(question).terms)
    assert found <= terms
    assert found & {"garden", "budget", "花园"}


@pytest.mark.parametrize("question", [*WIDE, *SINGLE])
def test_other_questions_are_searched_for_whole(question):
    assert find_subject(question) == question


def test_question_of_only_such_words_is_searched_for_whole():
    question = "Please list the order in which topics came up over time."
    assert find_subject(question).split() != []
    assert read_query("总结我们的对话").terms


@pytest.mark.parametrize(
    ("question", "is_said"),
    [
        (LONG[1], True),
        ("How many different plants have I mentioned?", True),
        ("请按时间列出我说过的花园的事", True),
        ("How did my garden develop over time?", False),
        ("Can you summarize how we discussed the garden?", False),
        ("总结一下我们聊过的花园", False),
        ("Did I mention my allergy?", False),
    ],
)
def test_question_about_the_users_own_words_is_detected(question, is_said):
    assert read_query(question).is_said == is_said
