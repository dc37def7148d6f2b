import subprocess
import sys


def test_engine_loads_without_django():
    script = (
        "import sys, memory.engine.plan, memory.engine.summaries.summarizer;"
        "sys.exit(any(name.startswith('django') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
