import threading

import pytest
from django.db import connection
from langchain.agents import create_agent

from memory.agent_threads import DjangoStore
from memory.agents.middleware import WindowpaneMiddleware
from memory.agents.stores import ThreadMemory
from memory.agents.testing import StoreContract, make_memory
from memory.models import AgentThread

from .agents.agents import SIX_KEEP_TWO, model, summariser

pytestmark = pytest.mark.django_db(transaction=True)


class TestDjangoStore(StoreContract):
    def make_store(self):
        return DjangoStore()

    def test_store_replaces_an_unreadable_memory(self):
        AgentThread.objects.create(
            key="1", version=7, memory={"version": 7, "segments": 1}
        )
        store = self.make_store()
        assert store.load("1") == ThreadMemory(version=7)
        assert store.save("1", make_memory(8), seen=7)
        assert store.load("1") == make_memory(8)

    def test_store_leaves_no_connection_to_a_thread(self):
        left = []

        def load():
            self.make_store().load("1")
            left.append(connection.connection)

        thread = threading.Thread(target=load)
        thread.start()
        thread.join(10)
        assert left == [None]

    async def test_awaited_agents_use_the_store(self):
        memory = WindowpaneMiddleware(
            model(),
            summarizer=summariser(),
            store=self.make_store(),
            background=False,
            **SIX_KEEP_TWO,
        )
        chat_model = model()
        agent = create_agent(chat_model, middleware=[memory])
        said = [("user", str(number)) for number in range(6)]
        state = await agent.ainvoke({"messages": said})
        await agent.ainvoke({"messages": [*state["messages"], ("user", "next")]})
        assert "Summary 1." in chat_model.requests[-1][0].text
