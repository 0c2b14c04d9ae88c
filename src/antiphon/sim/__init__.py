"""Whole parties under faults, from one seed: the real code of many peers on virtual time."""
