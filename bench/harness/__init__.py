"""What the benchmarks share.

report      arguments, rounds, goals, the table and the JSON line
side        a process that does one side's work on command
feed_side   our side of bench/feed.py
"""
