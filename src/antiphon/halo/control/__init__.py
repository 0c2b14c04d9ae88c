"""Control: the party state machine.

machine         `PartyMachine`: takes control blocks in any order, delivers them causally, answers for the party
known_feeds     `KnownFeeds`: the control feeds that acts name in a chain from the genesis
control_feeds   `fold_control_feeds`: hand the control feeds of a store to a machine
taken_feeds     `TakenFeeds`: how far the feeds of a store were handed to a machine
party_answers   `PartyAnswers`: the answering half of the machine
control_blocks  `ControlBlocks`: the reading half of the machine
control_lane    `ControlLane`: the history of one control feed, up to its fork
control_paths   `ControlPaths`: which blocks of forked control feeds an epoch rests on
epoch_rights    `EpochRights`: the rights by the control blocks of an epoch alone
present         `Present`: the policy and roles by all blocks, cached
checkpoints     `Checkpoints`: lets go of acts that give nobody anything, and begins with what was saved
lane_checkpoint  `LaneCheckpoint`: what was found out about the blocks of a control feed
branch_checkpoint  `BranchCheckpoint`: what was found out about the kept branches of a control feed
settled_branches  `SettledBranches`: branch blocks that a machine knows, and leaves in the store
checkpoint_codec  the bytes of checkpoints
checkpoint_file  `CheckpointFile`: the file of a party's checkpoints
stray_acts      `StrayActs`: the acts of branches that were shown
state_fold      fold acts into a `PartyState`
state           `PartyState`: members, groups, feeds, policy, epochs and void acts

Control blocks and evidence of forks come in; the state, verdicts and final epochs go out. Imports `rights` and the
rooms before it; causal delivery is `antiphon.feed.causal_delivery`.
"""
