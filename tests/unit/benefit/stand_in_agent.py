"""A program that stands for Claude Code: the same options and the same lines, as documented; its model is asked over HTTP.

`stand_in_agent.py --version`, or the options of a run. The first word of the prompt says how it behaves.
"""

import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit


def say(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def option(name, default=""):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def ask_model(tools):
    place = urlsplit(os.environ["ANTHROPIC_BASE_URL"])
    connection = http.client.HTTPConnection(place.hostname, place.port)
    body = {"model": option("--model"), "messages": [], "tools": [{"name": name} for name in tools]}
    headers = {"x-api-key": os.environ.get("ANTHROPIC_API_KEY", "")}
    connection.request("POST", f"{place.path}/v1/messages", json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def call(number, name, text, *, is_error=False):
    use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {"query": "rows"}}
    text_block = {"type": "text", "text": "Let me look."}
    for block in (text_block, use):  # a message comes once for each of its blocks
        say(type="assistant", message={"id": f"m{number}", "model": "big-1", "content": [block]})
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": is_error}
    say(type="user", message={"content": [result]})


def end(text, subtype="success", **fields):
    usage = {"inputTokens": 100, "outputTokens": 10, "cacheReadInputTokens": 50, "cacheCreationInputTokens": 5}
    models = {"big-1": usage, "small-1": usage}
    main = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 50}
    say(type="result", subtype=subtype, result=text, usage=main, modelUsage=models, total_cost_usd=0.25, **fields)


if sys.argv[1:] == ["--version"]:
    print("9.9.9 (Stand-in)")
    sys.exit()
prompt = option("-p")
word, _, rest = prompt.partition(" ")
config = option("--mcp-config")
servers = json.loads(Path(config).read_text())["mcpServers"] if config else {}
offered = [] if word == "silent" else [f"mcp__{name}__find_code" for name in servers]
state = "failed" if word == "silent" else "connected"
say(
    type="system", subtype="init", tools=["Read", *offered], mcp_servers=[{"name": n, "status": state} for n in servers]
)
if word == "hang":
    subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
    time.sleep(60)
if word == "crash":
    sys.stderr.write("panic: something broke\n")
    sys.exit(3)
if word == "outside":
    try:
        http.client.HTTPConnection("192.0.2.1", 80, timeout=5).connect()
        end("reached")
    except OSError as error:
        end(f"errno {error.errno}; model {ask_model(offered)[0]}")
    sys.exit()
for number in range(int(rest) if word in {"turns", "calls"} else 1):
    if os.environ.get("ANTHROPIC_BASE_URL"):
        status, body = ask_model(["Read", *offered])
        if status != 200:
            sys.stderr.write(f"API Error: {status}\n")
            end(body.decode(), "error_during_execution", is_error=True)
            sys.exit(1)
    if word == "calls":
        call(number, "Read", "nothing")
if word == "use":
    call(1, "Read", "     1\tdef add(item):\n     2\t    rows.append(item)\n")
    call(2, offered[0] if offered else "Grep", "store.py: rows")
    call(3, offered[0] if offered else "Grep", "no such index", is_error=True)
if word == "write":
    Path("src").mkdir()
    Path("src/new.py").write_text("x = 1\n")
    Path("store.py").write_text(Path("store.py").read_text() + "# changed\n")
    Path("link.py").symlink_to("/etc/passwd")
if word == "show":
    files = sorted(str(path) for path in Path().rglob("*") if path.is_file())
    shown = {"argv": sys.argv[1:], "env": dict(os.environ), "files": files, "cwd": str(Path.cwd()), "mcp": servers}
    end(json.dumps(shown))
elif word == "most":
    end("", "error_max_turns", is_error=True)
else:
    end("" if word == "nothing" else f"the answer to {prompt}")
