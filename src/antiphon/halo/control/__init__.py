"""Control: the party state machine.

machine        `PartyMachine`: takes control blocks in any order, delivers them causally, answers for the party
known_feeds    `KnownFeeds`: the control feeds that acts name in a chain from the genesis
control_feeds  `fold_control_feeds`: hand the control feeds of a store to a machine
state_fold     fold acts into a `PartyState`
state          `PartyState`: members, groups, feeds, policy, epochs and void acts

Control blocks and evidence of forks come in; the state, verdicts and final epochs go out. Imports `rights` and the
rooms before it; causal delivery is `antiphon.feed.causal_delivery`.
"""
