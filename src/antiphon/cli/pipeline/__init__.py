"""`antiphon pipeline`: the commands that run on Spark.

    commands  the group, and `run`, `sql` and `tables`
    stream    `stream` and `changes`: tables that follow homes, and their changes by run
    query     `query`: a query of the API over the tables
    verify    `verify`: check homes and archives without folding them
    epoch     `epoch`: compute the next epoch of a party on Spark and declare it
    archive   `archive export`, `import` and `check`: a home as Parquet
    session   a Spark session with progress, and the end of an interrupted command
    progress  how far Spark is in the running stage

Start reading at commands. Spark is an extra: modules of `antiphon.pipeline` are imported inside the commands, and a
missing package is reported with the `pip install` that brings it. An interrupted command ends with 130.
"""
