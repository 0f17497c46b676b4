"""The REST API under /v1: each file one kind of resource; models, errors, limits and paging are common to all."""
