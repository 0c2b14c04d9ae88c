"""Credentials: what a control block claims, signed by the keys that claim it.

claims       every claim as an immutable value: admissions, narrowings, policy, epochs, erasures, evidence of forks
credential   sign a claim and read it back; the signature covers the party key
epoch_codec  claims about epochs, and the policy, to protobuf and back
lists        lists of cuts that go on in the next blocks of a batch
fields       checked and bounded fields that several claims share

Claims and key pairs come in and signed bytes go out, or the reverse. Imports `antiphon.core` and `antiphon.feed`.
"""
