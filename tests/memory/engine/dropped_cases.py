"""Ten short conversations with a summary each, and what of them the summary dropped.

Labelled by hand, before they were first compared with what is found: each label is the
number of a message, a kind, and words that have to be in what is reported.
"""

CASES = [
    (
        [
            "I'm moving to Lisbon on 14 March 2026 with my sister Carla.",
            "Lovely! Do you have a flat already?",
            "Yes, Rua Augusta 12 for 1,150 euros a month. I can't take my piano along.",
            "Then let's plan the move.",
            "We decided to hire the movers from Porto. Maybe we will ship the bikes by "
            "train.",
            "Good choice.",
        ],
        "The user moves to Lisbon in March with Carla and can take the piano along. "
        "The flat is in Rua Augusta 12. The bikes will ship by train.",
        [
            (1, "date", "14 March 2026"),
            (3, "number", "1,150"),
            (3, "negation", "piano"),
            (5, "decision", "movers"),
            (5, "hedge", "bikes"),
            (5, "name", "Porto"),
        ],
    ),
    (
        [
            "The API returns HTTP 502 for order ORD-88213 since Tuesday.",
            "Which service logs the error?",
            "It's billing-worker, version 4.2.1. We agreed to roll back the image.",
            "Understood, rolling back.",
            "Still open: who tells the customer Initech about the delay?",
            "I'll ask the account team about Initech.",
        ],
        "The API fails for order ORD-88213 in billing-worker. They roll back the "
        "image.",
        [
            (1, "number", "502"),
            (3, "number", "4.2.1"),
            (5, "name", "Initech"),
            (6, "open", "account team"),
        ],
    ),
    (
        [
            "My daughter Mia is allergic to peanuts and doesn't eat eggs.",
            "I will keep that in mind for the recipes.",
            "Dinner is for 9 people on Saturday. I think my brother might bring wine.",
            "Great.",
            "Let's go with the mushroom risotto as a main dish.",
            "Risotto it is.",
        ],
        "Mia is allergic to peanuts and eats eggs. Dinner is for nine people; the "
        "brother will bring wine. The main dish is mushroom risotto.",
        [(1, "negation", "eggs"), (3, "hedge", "wine")],
    ),
    (
        [
            "I prefer short answers, and never call me by my full name Alexandra.",
            "Sure, Alex.",
            "My thesis is due on 2026-09-30, supervisor is Dr. Okonkwo.",
            "Noted. How far are you?",
            "Chapter 3 is done. The budget of 2,400 was not approved by the faculty.",
            "Sorry to hear that.",
        ],
        "Alex wants short answers. The thesis is due on 30 September 2026; the "
        "supervisor is Dr. Okonkwo. Chapter 3 is done. The budget of 2,400 was "
        "approved by the faculty.",
        [(1, "name", "Alexandra"), (5, "negation", "approved")],
    ),
    (
        [
            "Please book the train from Graz to Linz, seat 47, coach 23.",
            "Window or aisle?",
            "Window. My BahnCard is 7081412345678901 and my mail is eva@example.org.",
            "Booked.",
            "Perhaps we will stay at hotel Wolfinger for two nights.",
            "A good hotel.",
        ],
        "A train from Graz to Linz was booked, at the window. Eva's mail is "
        "eva@example.org. They may stay at hotel Wolfinger.",
        [
            (1, "number", "47"),
            (1, "number", "23"),
            (3, "name", "BahnCard"),
            (3, "identifier", "7081412345678901"),
        ],
    ),
    (
        [
            "What is the capital of Peru? And how far is it from Cusco?",
            "Lima; about 1,100 km by road.",
            "Thanks. I want to go there without flying, with no more than 60 litres of "
            "luggage.",
            "Then the bus takes 22 hours.",
            "OK, we'll take the bus of Cruz del Sur.",
            "Have a good trip.",
        ],
        "The user travels to Lima by the bus of Cruz del Sur, not by plane.",
        [(3, "number", "60")],
    ),
    (
        [
            "我叫王小明，住在杭州，电话是13812345678。",
            "好的，记住了。",
            "我不吃香菜，预算大概3000元。",
            "明白。",
            "我们决定十月二日坐高铁去南京。",
            "好的，高铁很方便。",
        ],
        "用户王小明住在杭州，吃香菜。预算3000元。",
        [
            (1, "identifier", "13812345678"),
            (3, "negation", "香菜"),
            (3, "hedge", "3000"),
            (5, "decision", "高铁"),
        ],
    ),
    (
        [
            "服务器的地址是 /srv/app/config.yaml，端口 8443。",
            "收到。",
            "数据库迁移的时间待定，要等测试组的报告。",
            "好的。",
            "缓存可能用 Redis 集群。",
            "可以考虑。",
        ],
        "配置在 /srv/app/config.yaml。缓存用 Redis 集群。",
        [(1, "number", "8443"), (3, "open", "迁移"), (5, "hedge", "Redis")],
    ),
    (
        [
            "The contract ends on May 3. I don't want to renew it with Vodafone.",
            "Shall I look for others?",
            "Yes, at most 25 euros, 40 GB, and without a router.",
            "Telekom has one for 24.95.",
            "I'll take that one. I have to return the old router until 17 May.",
            "I'll remind you.",
        ],
        "The contract with Vodafone ends on 3 May and will not be renewed. The user "
        "takes the offer of Telekom for 24.95 and returns the old router.",
        [
            (3, "number", "25"),
            (3, "number", "40"),
            (5, "date", "17 May"),
        ],
    ),
    (
        [
            "Our team has no designer, so we can't redesign the page before June.",
            "What about a template?",
            "Good idea. We chose the Tailwind kit, licence for 3 developers.",
            "Fine.",
            "The launch date is to be confirmed by Priya; the old page is never shown "
            "again after it.",
            "Understood.",
        ],
        "The team lacks a designer and avoids a redesign before June. It uses the "
        "Tailwind kit.",
        [
            (3, "number", "3"),
            (5, "open", "launch date"),
            (5, "name", "Priya"),
            (5, "negation", "old page"),
        ],
    ),
]
