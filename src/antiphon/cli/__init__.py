"""The command line, `antiphon`: inspect and verify a home, its parties and their epochs, in one process or on Spark.

    app             the application, and commands about a whole home: feeds, verify, quarantine, compact, gc
    party_commands  `antiphon party`: members, export to a CAR file, import, and verification of epochs
    backup_commands  `antiphon backup`, `antiphon restore`
    operator_commands  `antiphon party costs`, `devices`, `ignore`, `heed`, `revoke`, `end-device`, `leave`, `take-back`
    epochs          `antiphon epoch`: list, declare, attest, prune, and the policy
    snapshots       `antiphon epoch show` and `save`: one snapshot, or one view of it
    generate        `antiphon generate`: a home of test data
    sim             `antiphon sim`: a party under faults, and the search for one that breaks a law
    pipeline/       `antiphon pipeline`: the commands that run on Spark
    common          shared options, opening a home, and output for people or as JSON

A home is the folder of one peer, with `feeds/`, `keys` and `meta.db`. Commands take it from `--home` or ANTIPHON_HOME.
With `--json`, a command writes one JSON value to standard output. Exit codes: 0 success, 1 something is wrong with the
data, 2 bad input or an error, 130 interrupted. This package imports every other one; none imports it. Modules that are
slow to load (the API, the simulator, Spark) are imported by the commands that need them.
"""

from __future__ import annotations

from antiphon.cli.app import main

__all__ = ["main"]
