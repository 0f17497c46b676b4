"""What the program prints and writes, frozen: some hundreds of calls with their outputs, and the program's interfaces.

    python tests/corpus/corpus.py            compare with what is kept; exit 1 and a diff where anything differs
    python tests/corpus/corpus.py --write    make it anew; read the diff, and say in the commit what was meant to differ
    python tests/corpus/corpus.py compare    only the scenes whose names begin so

A scene (`scenes/`) is a folder with its inputs and the calls made in it, in order. `expected/SCENE/CALL.txt` holds the exit
code, both streams and every file that the call wrote. The examples of the documentation are frozen in their pages and are
not repeated here. What differs from machine to machine is replaced by a name in braces; scripts and styles of an HTML page by
their kind, a picture by its words.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import multiprocessing
import os
import platform
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pages import page_words
from scenes import SCENES, UNWATCHED, Scene

CHECKOUT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).with_name("expected")
SHOWN_FILES = {".csv", ".html", ".json", ".jsonl", ".md", ".qrels", ".run", ".toml", ".txt", ".xml", ".yaml", ".yml"}
"""Files whose text is kept; of others that a call writes, the name."""
UNSHOWN_FILES = re.compile(r"\.log\.jsonl$|^\.cranfield/history/")
"""Of those, what is not kept all the same: it is all durations, or also elsewhere."""
DATABASES = {".db", ".db-shm", ".db-wal"}
"""Their files change when a connection is closed, not by a call."""
MAX_SLUG = 90
MAX_DIFF_LINES = 200
MAX_WIDTH = 300

VOLATILE: tuple[tuple[str, str], ...] = (
    (r"(?:\d{4}-\d\d-\d\d|\{today\})[T -]\d\d[:-]?\d\d[:-]?\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?", "{time}"),
    (r"\{today\} \d\d:\d\d\b(?: (?:UTC|CES?T))?|\d{4}-\d\d-\d\d \d\d:\d\d (?:UTC|CES?T)\b", "{time}"),
    (r"(?m)^( {4,})\d\d:\d\d(?= {4,})", r"\1hh:mm"),
    (r"(?<=history/\{time\})-\d(?=\.)", ""),
    (r"(?<=:)\d{5}(?!\w)", "{port}"),
    (r'("(?:\w+_)?at": ?)1[789]\d{11}\b', r"\1{ms}"),
    (r"(?<=rows, sha256 )[0-9a-f]{64}", "{digest}"),
    (r"(?<=timestamp_seconds\{)([^}]*\}) \S+", r"\1 {number}"),
    (r'(?i)\b(python|numpy|scipy|pyarrow)("?:? "?)\d+(?:\.\d+)+', r"\1\2{version}"),
)
DURATIONS: tuple[tuple[str, str], ...] = (
    (
        r"(?<![\w.])[−+-]?\d+(?:[.,]\d+)*(?: to [−+-]?\d+(?:[.,]\d+)*)? (?:ms|s|µs|minutes?|queries/s)(?!\w)",
        "{duration}",
    ),
    (r"(?<=\{duration\} )\\?\[[^]]*\]", "[...]"),
    (r"(?<=\()\d+(?:\.\d+)?/s(?=, (?:took|\{duration\} left))", "{rate}"),
    (r"(cranfield_latency\w*(?:\{[^}]*\})?) [\d.e+-]+", r"\1 {number}"),
    (r"(?m)^-{5,}$", "-----"),
    (r"(?<=\S) {2,}(?=(?:mean|p50|p95|p99|max|failed)\b)", "  "),
    (r'("latency_ms": ?)\{[^}]*\}', r"\1{durations}"),
    (r'("ci_ms": ?)\[[^]]*\]', r"\1{durations}"),
    (r'("(?:\w*_)?(?:ms|seconds|duration|elapsed|latency\w*|queries_per_second)": ?)-?\d[\d.e+-]*', r"\1{number}"),
)
"""What a scene that calls a search system has besides."""
ACCEPTED_TODAY = r'"accepted": "\{today\}",(?:[^{}]|\{version\}){0,300}"digest": "sha256:([0-9a-f]{64})"'
"""In the file of a baseline: its digest, which is also of the day."""
DATED: set[str] = set()
"""Those of the baselines of a scene, which is a process."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("names", nargs="*", help="beginnings of the names of scenes; default: all")
    arguments.add_argument("--write", action="store_true", help="write what is expected anew")
    chosen = arguments.parse_args()
    scenes = [scene for scene in SCENES if not chosen.names or scene.name.startswith(tuple(chosen.names))]
    began = time.monotonic()
    # The longest first, each in a process of its own: what one leaves behind is not there in the next.
    processes = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=processes, max_tasks_per_child=1) as pool:
        outputs = {
            f"{scene.name}/{name}": text
            for scene, found in zip(scenes, pool.map(run_scene, [scene.name for scene in scenes]), strict=True)
            for name, text in found.items()
        }
    kept = {
        path.relative_to(EXPECTED).with_suffix("").as_posix(): path
        for scene in scenes
        for path in (EXPECTED / scene.name).glob("*.txt")
    }
    if not chosen.names:  # scenes that are no more
        kept |= {p.relative_to(EXPECTED).with_suffix("").as_posix(): p for p in EXPECTED.glob("*/*.txt")}
    changed = differences(outputs, kept)
    if chosen.write:
        for name in kept.keys() - outputs.keys():
            kept[name].unlink()
        for name, text in outputs.items():
            path = EXPECTED / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    else:
        lines = [line for each in changed.values() for line in each]
        print("\n".join(line[:MAX_WIDTH] for line in lines[:MAX_DIFF_LINES]))
        if len(lines) > MAX_DIFF_LINES:
            print(f"... {len(lines) - MAX_DIFF_LINES} more lines")
    print(f"{len(outputs)} calls, {len(changed)} differ ({time.monotonic() - began:.0f} s)")
    return 0 if chosen.write or not changed else 1


def differences(outputs: dict[str, str], kept: dict[str, Path]) -> dict[str, list[str]]:
    """The diff of each call whose output is not what is kept."""
    found = {}
    for name in sorted(outputs.keys() | kept.keys()):
        before = kept[name].read_text(encoding="utf-8") if name in kept else ""
        after = outputs.get(name, "")
        if before != after:
            found[name] = list(
                difflib.unified_diff(
                    before.splitlines(), after.splitlines(), f"kept/{name}", f"now/{name}", "", "", 1, ""
                )
            )
    return found


def run_scene(name: str) -> dict[str, str]:
    """The outputs of the calls of a scene, by the names of the calls."""
    from cranfield.cli.main import run_command_line

    signal.signal(signal.SIGINT, signal.default_int_handler)
    scene = next(scene for scene in SCENES if scene.name == name)
    draw_pictures_once()
    outputs: dict[str, str] = {}
    with scene_folder(scene) as folder:
        for call in scene.calls:
            before = files_of(folder)
            out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", newline="") for _ in range(2))
            shown = call if isinstance(call, str) else call.__name__
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    if isinstance(call, str):
                        status = run_command_line(shlex.split(call.replace("{python}", sys.executable)))
                    else:
                        call()
                        status = 0
                except Exception:  # noqa: BLE001 - a call of a scene may fail in any way; the others are still run
                    status = -1
                    traceback.print_exc()
            printed = []
            for stream in (out, err):
                stream.flush()
                printed.append(stream.buffer.getvalue().decode())
            parts = [f"$ {shown}", f"exit {status}"]
            for title, text in zip(("stdout", "stderr"), printed, strict=True):
                if text:
                    parts.append(f"--- {title}\n{steady(text, scene, folder).rstrip()}")
            after = files_of(folder)
            for path in sorted(after):
                if after[path] == before.get(path):
                    continue
                written = steady(path.relative_to(folder).as_posix(), scene, folder)
                if path.suffix not in SHOWN_FILES or UNSHOWN_FILES.search(path.relative_to(folder).as_posix()):
                    parts.append(f"--- file {written} (not shown)")
                    continue
                known = before.get(path, b"")
                appended = known if known and after[path].startswith(known) else b""
                text = steady(after[path][len(appended) :].decode("utf-8", "backslashreplace"), scene, folder)
                if not appended and known and text == steady(known.decode("utf-8", "backslashreplace"), scene, folder):
                    continue
                parts.append(f"--- {'appended to' if appended else 'file'} {written}\n{text.rstrip()}")
            outputs[name_of(shown, outputs)] = "\n".join(parts) + "\n"
    return outputs


@contextlib.contextmanager
def scene_folder(scene: Scene) -> Iterator[Path]:
    """A folder with the inputs of a scene, as the current one; times, names and seeds of the machine do not reach it."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as made:
        folder = Path(made).resolve()
        for source in scene.copies:
            shutil.copytree(
                CHECKOUT / source,
                folder / Path(source).name,
                ignore=shutil.ignore_patterns("__pycache__", ".cranfield"),
            )
        for name, content in scene.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for variable in [one for one in os.environ if one.startswith(("CRANFIELD_", "GITHUB_", "GITLAB_", "CI_"))]:
            del os.environ[variable]
        os.environ |= {
            "CI": "",
            "COLUMNS": "120",
            "TZ": "UTC",
            "NO_COLOR": "1",
            "HOME": str(folder),
            "LOGNAME": "author",
            "LC_ALL": "C.UTF-8",
        }
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        for who in ("AUTHOR", "COMMITTER"):
            os.environ |= {
                f"GIT_{who}_NAME": "A. Author",
                f"GIT_{who}_EMAIL": "author@example.org",
                f"GIT_{who}_DATE": "2026-01-02T03:04:05Z",
            }
        time.tzset()
        back = Path.cwd()
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(back)


def files_of(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in DATABASES and not {".git", "__pycache__", UNWATCHED} & set(path.parts)
    }


def steady(text: str, scene: Scene, folder: Path) -> str:
    """A text without what differs from machine to machine and from day to day."""
    from cranfield.base.version import __version__

    if text.lstrip()[:15].lower().startswith("<!doctype html"):
        text = page_words(text)
    for path, name in ((folder, "{folder}"), (CHECKOUT, "{checkout}"), (Path(sys.executable).parent, "{bin}")):
        text = text.replace(str(path), name)
    for version in (__version__, platform.python_version()):
        text = text.replace(version, "{version}")
    text = text.replace(time.strftime("%Y-%m-%d"), "{today}")
    for pattern, name in (*VOLATILE, *(DURATIONS if scene.timed else ())):
        text = re.sub(pattern, name, text)
    DATED.update(re.findall(ACCEPTED_TODAY, text))
    for digest in DATED:
        text = text.replace(digest, "{digest of today}").replace(digest[:12], "{digest of}")
    return text


def name_of(call: str, taken: dict[str, str]) -> str:
    """A file name for a call: its words, and a number where another has the same."""
    slug = re.sub(r"[^\w.=@-]+", "-", call.replace("--", "")).strip("-.")[:MAX_SLUG]
    name, number = slug, 2
    while name.lower() in {one.lower() for one in taken}:
        name, number = f"{slug}-{number}", number + 1
    return name


def draw_pictures_once() -> None:
    """The same picture is in the pages of several forms of a report, and drawing is a third of the time."""
    import vl_convert

    draw = vl_convert.vegalite_to_svg
    drawn = cache(lambda call: draw(*json.loads(call)[0], **json.loads(call)[1]))
    vl_convert.vegalite_to_svg = lambda *words, **named: drawn(json.dumps((words, named)))


if __name__ == "__main__":
    sys.exit(main())
