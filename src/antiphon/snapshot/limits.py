"""All limits of snapshots. Limits marked *format* decide CIDs, and never change."""

from __future__ import annotations

VALUE_INLINE_MAX = 1024  # format: a larger value is content, beside its leaf
VALUE_SIZE_MAX = 256 << 20  # of one value, in memory
LEAF_ENTRIES_MAX = 32  # format: twice the mean
INNER_ENTRIES_MAX = 128  # format: twice the mean
LEVEL_MAX = 8  # format: so a tree has at most nine levels
COUNT_MAX = 1 << 48  # entries of a tree

GROUP_LINKS_MIN = 16  # format: links in a node of content, but for the last
GROUP_LINKS_MAX = 1024  # format
CONTENT_LEVEL_MAX = 8
CONTENT_SIZE_MAX = 1 << 42

BATCH_COUNT_MAX = 256  # blobs in one put
BATCH_SIZE_MAX = 8 << 20

MODELS_MAX = 1024
MODEL_NAME_SIZE_MAX = 256
CONTROL_SIZE_MAX = 3 << 20  # of a timeframe of control feeds; the root is one blob

CAR_ROOTS_MAX = 64
