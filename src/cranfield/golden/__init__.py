"""Golden sets over a code base: authors, an oracle, an adversary and people, with checks against the source between them."""
