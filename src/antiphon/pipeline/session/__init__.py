"""The Spark session of the pipeline, and how work is sent to Spark's Python workers.

    session         `open_session` for this machine or a cluster; `prepare` for a session made elsewhere
    java            find the Java that Spark is started with
    worker_daemon   the process that forks Spark's Python workers, with the imports done in advance
    tasks           run a function over values in the workers, in tasks of about equal weight
    worker_errors   raise an Antiphon error of a worker as the same error in the driver
    full_disk       name the disk that is full, whichever library says so
    stage_events    names and durations of the stages of a job, for progress displays

In: settings and functions. Out: a session, results, errors. This room may import `source` and `archive_format`.
"""
