"""The health of a home: what is wrong with its files, what to do about it, and the repairs that lose nothing sound.

Start reading at `finding`, then `check`.

    finding      `Finding`: one thing that is wrong, with a stable code and the next step
    home_files   the names of a home's files, and who may read them
    check        `check_home`: yields the findings of a whole home, which may be in use
    repair       `repair_home`: rebuilds what is derived, drops what is rotten, and touches nothing else
    upgrade      `upgrade_home`: the steps from one version of a home to the next, which `antiphon.open` takes
    presence     a lost file must not look like one that was never made: checks of `antiphon.open`
    feed_checks  findings in the feed store and in the blobs
    file_checks  findings in keys, metadata, item stores, checkpoints, names and views

In: the folder of a home. Out: findings. Only `repair` and `upgrade` write. The room imports the packages below `api`,
and no other room of it; `antiphon verify`, `antiphon doctor` and the store use it.
"""
