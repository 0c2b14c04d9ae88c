"""Homes full of parties, made from a seed: for tests, benchmarks and demonstrations."""
