"""The fold of a whole survey in Spark: delivered messages in, items and refused messages out.

    fold_job         the job: read blocks, shuffle them in chunks to the partition of their item, fold each partition
    item_fold        folds one item at a time with `antiphon.model.fold.fold`; stages `folded`, `items`, `refused`
    flat_item_fold   folds flat objects: mutations in columns (room `columnar`), everything else with `fold`
    resume_fold      `ItemFold` for incremental runs: folds new messages onto the states in the table `items`
    digest           the digest of the states of a party's items, computed partition by partition
    summary          tallies of partitions, and their sum: messages applied, refused, digests, skew
    block_account    the account of every block of a party: held = control + based + applied + refused + …

In: `plan.survey.Survey` (which blocks count, and whose they are) and chunks of messages from `order`.
Out: rows of `item_fold.SCHEMA`, `Summary`, `Account`.
May import `columnar`, `order`, `plan`, `session`, `source`. Start reading at `fold_job`.
"""
