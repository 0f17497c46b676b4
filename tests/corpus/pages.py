"""HTML pages as text that can be compared."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re


def page_words(text: str) -> str:
    """An HTML page, one element a line; styles and scripts by their kind, data in full, pictures by their words."""

    def script(found: re.Match[str]) -> str:
        if 'class="query-data"' in found[1]:  # a gzipped JSON document in base64
            return f"<script{found[1]}>{json.dumps(json.loads(gzip.decompress(base64.b64decode(found[2]))))}</script>"
        return f"<script{found[1]}>{found[2] if 'json' in found[1] else '...'}</script>"

    def picture(found: re.Match[str]) -> str:
        words = [
            html.unescape(re.sub(r"<[^>]*>", "", one))
            for one in re.findall(r"<text[^>]*>(.*?)</text>", found[0], re.DOTALL)
        ]
        labels = re.findall(r'aria-label="([^"]*)"', found[0])
        return "<svg>" + " | ".join(sorted({*words, *labels} - {""})) + "</svg>"

    text = re.sub(r"<style[^>]*>.*?</style>", "<style>", text, flags=re.DOTALL)
    text = re.sub(r"<script([^>]*)>(.*?)</script>", script, text, flags=re.DOTALL)
    text = re.sub(r"<svg.*?</svg>", picture, text, flags=re.DOTALL)
    text = re.sub(r"(sha256-|base64,)[A-Za-z0-9+/=]+", r"\1...", text)
    return re.sub(
        r"\n\s*\n+",
        "\n",
        re.sub(r">\s*<(?!/(?:td|th|a|b|code|span|strong|em|li|p|h\d|summary|button|option)>)", ">\n<", text),
    )
