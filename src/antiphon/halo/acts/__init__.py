"""Acts: control blocks as the party state machine sees them.

act          `Act`, a control block with its claim read; `Place`, a position in a feed with its timeframe
grant        questions about one grant: its subject, its roles, its expiry; `Owner`, whose a feed is
barren_acts  `BarrenActs`: the acts of a control feed that give nobody anything, as columns
act_columns  `ActColumns`: acts of a control feed as columns, from which each is made again

Blocks come in; acts go out. Imports `credentials`.
"""
