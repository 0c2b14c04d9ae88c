"""Rights: who may do what, at any place of any feed.

authority     `Authority`: grants, narrowings and ends of feeds, and every question about them; start here
verdict       the verdict on an act or a data message: in force, or void with a reason
grant_checks  if a grant was given, or a narrowing made, by somebody with the right
narrowings    what narrowings leave of a grant at a place
judging_order grants and policies, oldest first: those before a doubt need not be judged again
runs          grants, or narrowings, of one feed that say the same
kept_acts     acts that take, kept as columns, and few of them made as values
feed_owners   `FeedOwners`: whose each feed is
feed_ends     where revocations end a feed
takings       ends of devices by device, and erasures by data feed
inheritance   what a child party takes over from its parent
policies      the policy at a place
authorship    whose a data message is, and which messages are erased
floors        what final epochs hold is final: lower bounds of every cut
budgets       how many feeds, devices and admissions count
barren        which acts are void whatever else arrives, and what still concerns them
answer_cache  answers that an `Authority` keeps until an act changes them

Acts come in; roles, verdicts and ends of feeds go out. Imports `finality`, `acts` and `credentials`.
"""
