"""Verify the feeds of homes and plan their parties: how far each feed counts, which messages are void, and why.

    survey         verify and plan homes from scratch: `survey` returns a `Survey`; stage `blocks` reads it
    party_plan     the plan of one party, computed with the code of the live engine
    resume_point   the state of a party that the tables keep between two runs, as JSON
    replan         verify and plan only what is new since a resume point
    plan_diff      parts of feeds that count otherwise in a newer plan
    standings      the standing of each part of a feed, and the stages `judged` and `quarantine`
    reread         read blocks again that were verified before

In: homes, parties, and the resume points of an earlier run. Out: plans, which are small and go to every executor.
This room may import `session`, `source` and `archive_format`. Start reading at `survey`.
"""
