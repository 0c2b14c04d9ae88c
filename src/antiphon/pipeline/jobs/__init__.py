"""Jobs: what the commands `antiphon pipeline run`, `stream` and `verify` run, and the stages to build your own.

    stages          all stages under their names, for use one by one
    batch_run       `Run`: one batch over homes; items as a DataFrame, and a report; writes no tables
    table_run       `TableRun`: an incremental run that brings the tables of a folder up to date
    table_commit    commits the tables of a run, and publishes them together
    table_account   the account of all blocks, read from the tables
    stream_job      `StreamJob`: a Spark stream in which each micro-batch is a `TableRun`
    report          `Report`: the result of a run as a value
    verify          verifies homes and archives without folding

In: homes or archives. Out: tables, reports, findings. May import all rooms of the pipeline but `archive`.
Start reading at `table_run`.
"""
