"""The README's example runs as it stands there."""

import re
from pathlib import Path

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage

README = Path(__file__).resolve().parent.parent / "README.md"


async def test_the_engine_example_compacts_without_django():
    code = re.search(r"```python\n(.+?)```", README.read_text(), re.DOTALL)[1]
    indented = "".join(f"    {line}\n" for line in code.splitlines())
    kinds = [HumanMessage, AIMessage] * 4
    scope = {
        "messages": [kind(f"Text {n}", id=str(n)) for n, kind in enumerate(kinds, 1)],
        "model": FakeListChatModel(responses=["They counted to six."]),
    }
    source = f"async def example():\n{indented}    return compaction, summary\n"
    exec(source, scope)  # noqa: S102
    compaction, summary = await scope["example"]()
    assert [message.id for message in compaction.messages] == list("123456")
    assert summary.text == "They counted to six."
