"""A module a revision; `down_revision` names the one before it."""
