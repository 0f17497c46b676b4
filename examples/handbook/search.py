"""Search handbook.json. Usage: search.py QUERY K TITLE_WEIGHT"""

import json
import sys

words, k, title_weight = sys.argv[1].lower().split(), int(sys.argv[2]), float(sys.argv[3])


def score(page):
    title, text = (page[part].lower().replace(".", "").split() for part in ("title", "text"))
    return sum(title_weight * title.count(word) + text.count(word) for word in words)


with open("handbook.json") as file:
    pages = json.load(file)
for page in sorted(pages, key=score, reverse=True)[:k]:
    if score(page):
        print(json.dumps({"id": page["id"], "score": score(page), "title": page["title"]}))
