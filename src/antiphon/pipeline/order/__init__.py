"""Bring the delivered messages of each item together, in the total order.

    messages        stage `messages` as a DataFrame: one row for each message, sorted by Spark
    shuffle_chunk   some thousands of messages in columns, as one value for Spark's shuffle
    total_order     the messages of one partition, sorted by item and stamp, in columns
    varints         vectorised reads of protobuf fields from the buffer of such messages

In: plans and blocks. Out: the messages of each item behind its base state, for the fold. `messages` is the readable
form of the stage; runs use chunks, which are several times as fast. This room may import `plan` and the rooms below.
"""
