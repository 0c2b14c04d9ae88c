"""The file format of archives: Parquet files of feeds and blobs, and the manifest that names them.

    manifest     `archive.json`, the Parquet schemas, and writers and readers of the files
    page_guard   limits on the size of Parquet pages, checked before they are decoded
    rows         feeds and spans as rows of an archive, and back
    reader       `FeedReader` and `Blobs` over the files of an archive

In: the folder of an archive. Out: the same readers that a home's stores give, so that every stage can read an archive
as if it were a home. `antiphon.pipeline.archive` writes archives and imports them. This room imports nothing else of
the pipeline and no Spark.
"""
