"""The page of results: docs/measured.md, written from docs/results and the shipped manifests."""
