"""Archives: export a home to Parquet, check an archive, and import it into a new home.

    plan      which blocks an export has to add, in tasks, and which erased bodies it has to remove
    export    `export_archive`: write the new blocks and blobs of a home into an archive
    check     `check_archive`: verify the files, blocks, heads, forks and blobs of an archive
    import_   `import_archive`: make a home from an archive, verified like data from a peer

In: a home or the folder of an archive. Out: an archive or a home, and a report. The file format is in
`antiphon.pipeline.archive_format`. This room may import all other rooms of the pipeline.
"""
