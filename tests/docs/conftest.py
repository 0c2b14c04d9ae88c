"""What the ledger promises is tried by Ada and Bob, whom the tests of the API have too."""

from tests.api.conftest import ada, bob, party, theirs

__all__ = ["ada", "bob", "party", "theirs"]
