"""Readers as a kind that is trained: rows of a writer's ink, cut into pieces, with their texts."""
