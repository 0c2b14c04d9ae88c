"""Backups of a home: a folder with copies of its files and their checksums, made while the home is in use.

Start reading at `backup`.

    backup    `backup`: copy a home that another process may write; `copy_home` copies an open store
    restore   `restore`: make a home of a backup, whose device writes into new feeds
    manifest  `Manifest`: the file `antiphon-backup.json`, with the files of a backup and their checksums

In: the folder of a home, or of a backup. Out: a folder that appears whole or not at all. The room imports `health` and
the packages below `api`; `Store.backup`, `antiphon backup` and `antiphon restore` use it.
"""
