"""Finality: which epochs are final, as a function of the set of acts.

epoch_chain   fold acts into the chain of final epochs and the open number
ballot        attestations and endorsements for one number, read from the attesters' feeds
epoch_values  proposals, final epochs, and the configuration that decides a number
idle_votes    votes that count for nobody, which are set aside
voting        what one device may still attest, endorse or propose without contradicting itself

Acts come in; an `EpochChain` goes out. Imports `acts` and `credentials`. docs/design/epochs.md has the rules.
"""
