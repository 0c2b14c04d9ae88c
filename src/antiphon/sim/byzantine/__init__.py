"""Attacks of byzantine peers, grouped by the layer that they attack.

    attacker      `Attacker`: the abilities that attacks share: forge, sign, push, with the keys of a member
    attacks       the list of all attacks, and how the seed of an act chooses one
    messages      malformed, oversized, unrequested and unverifiable messages between peers
    blocks        wrong bodies, headers and timeframe entries in data feeds; writers without rights
    forks         feeds with two histories
    credentials   forged rights, revocations, policies and evidence
    worst_member  runaway lamports, true hashes at wrong places, too many feeds, one id with two models, and more
    connections   garbage, recorded bytes, and devices that claim another one's key, on connections of their own
    epochs        wrong or unauthorised epochs, and votes for them

In: a `SimPeer` that holds the keys of a member. Out: messages to its neighbours. A run calls one attack for each act of
kind `lie`. In traces, pictures and options an attack is called a lie, and its peer a liar.
"""
