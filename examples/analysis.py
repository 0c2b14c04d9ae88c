"""A notebook in a file: from feeds to a table and a picture of which member wrote how much, and when.

Editors that support `# %%` run it cell by cell. It also runs as a program:

    .venv/bin/python examples/analysis.py                       reads a small home that it generates
    .venv/bin/python examples/analysis.py --home laptop         reads the home of a peer
    .venv/bin/python examples/analysis.py --out somewhere       writes the table and the picture there

It needs the extra `spark`. It does not change the home, and the peer can write at the same time.
"""

# %% Input and output
from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f

from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.pipeline import open_session
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.jobs.stages import blocks, judged
from antiphon.pipeline.plan.standings import DELIVERED
from antiphon.query.facts import CREATED_MS_MAX
from antiphon.sim.picture.svg import Sheet, box, polyline

parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
parser.add_argument("--home", type=Path, help="the home of a peer; by default, one is generated")
parser.add_argument("--out", type=Path, default=Path("analysis"), help="a folder for the table and the picture")
options = parser.parse_args()
out: Path = options.out
out.mkdir(parents=True, exist_ok=True)
SLOTS = 24  # columns of the picture

if options.home is None:
    home = Path(tempfile.mkdtemp(prefix="antiphon-")) / "home"
    generate(home, Options(parties=2, items=40, messages=1_500, writers=4, bad=0.02))
    print(f"made a home of two parties in {home}")
else:
    home = options.home

# %% Verify the feeds and plan the parties: how far each feed counts, and who wrote it
spark = open_session("antiphon analysis")
run = Run.begin(spark, home)
for plan in run.survey.plans:
    about = plan.error or f"{len(plan.lanes)} data feeds, epoch {plan.number}"
    print(f"party {plan.party.hex()[:8]}: {about}")

# %% Every block with its standing, from the stages alone, without reading bodies
columns = ("party", "feed", "seq", "created_ms", "item", "fault")
standing = judged(blocks(spark, run.survey, columns), run.survey.plans).cache()
standing.groupBy("standing").count().orderBy("standing").show()

# %% The member behind each message: feed → device → member, which may change at some block of a feed
members = [
    (plan.party, lane.feed, since, author.identity)
    for plan in run.survey.plans
    for lane in plan.lanes
    for since, author in lane.authors
]
whose = spark.createDataFrame(members, "party binary, feed binary, since long, member binary")
counted = standing.where((f.col("standing") == DELIVERED) & f.col("reason").isNull())
written = counted.join(whose, ["party", "feed"]).where(f.col("seq") >= f.col("since"))
clock = f.least("created_ms", f.lit(CREATED_MS_MAX)).alias("created_ms")  # a writer's clock may be wrong
latest = written.groupBy("party", "feed", "seq", clock).agg(f.max_by("member", "since").alias("member"))

# %% The table: messages that count, by member and time slot, by the clocks of the writers
ends = latest.agg(f.min("created_ms").alias("first"), f.max("created_ms").alias("last")).first()
first, last = (ends["first"] or 0, ends["last"] or 0) if ends is not None else (0, 0)
width = max(1, -(-(last - first + 1) // SLOTS))
slot = f.floor((f.col("created_ms") - first) / width).alias("slot")
activity = latest.groupBy("party", "member", slot).agg(f.count("*").alias("messages"))
rows = activity.orderBy("party", "member", "slot").collect()
when = [datetime.fromtimestamp((first + row["slot"] * width) / 1000, UTC) for row in rows]
table = pa.table(
    {
        "party": [bytes(row["party"]).hex() for row in rows],
        "member": [bytes(row["member"]).hex() for row in rows],
        "from": when,
        "messages": [row["messages"] for row in rows],
    }
)
pq.write_table(table, out / "activity.parquet")
totals = activity.groupBy("party", "member").agg(f.sum("messages").alias("messages"))
busiest = totals.orderBy(f.desc("messages"), "member").limit(12).collect()
for row in busiest:
    print(f"{bytes(row['party']).hex()[:8]}  {bytes(row['member']).hex()[:8]}  {row['messages']:>7,} messages")

# %% The picture: a row for each of the busiest members, all on one scale
counts = {(bytes(row["party"]), bytes(row["member"]), row["slot"]): row["messages"] for row in rows}
tallest = max(counts.values(), default=1)
LEFT, TOP, STEP, ROW = 150.0, 70.0, 26.0, 44.0
sheet = Sheet(LEFT + SLOTS * STEP + 40)
sheet.text((24, 30), "Activity by member", "title")
sheet.text((24, 50), f"messages that count; a full bar is {tallest:,} in {width / 1000:,.3g} s", "soft")
for number, row in enumerate(busiest):
    party, member = bytes(row["party"]), bytes(row["member"])
    floor = TOP + (number + 1) * ROW - 8
    sheet.text((24, floor), f"{member.hex()[:8]}", "bold", f"member {member.hex()} of party {party.hex()}")
    sheet.text((LEFT - 12, floor), f"{row['messages']:,}", "soft end")
    sheet.path(polyline(((LEFT, floor), (LEFT + SLOTS * STEP, floor))), "line faint", stroke=1)
    for at in range(SLOTS):
        count = counts.get((party, member, at), 0)
        if count:
            high = max(1.5, (ROW - 14) * count / tallest)
            sheet.path(box(LEFT + at * STEP + 2, floor - high, STEP - 4, high), "write", f"{count:,} messages")
bottom = TOP + len(busiest) * ROW + 16
for at, classes in ((first, "soft"), (last, "soft end")):
    x = LEFT if at == first else LEFT + SLOTS * STEP
    sheet.text((x, bottom), f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC", classes)
picture = out / "activity.svg"
picture.write_text(sheet.document(bottom + 24, "Activity by member"), encoding="utf-8")

# %% Free the cached blocks, and print the paths
standing.unpersist()
run.close()
print(f"wrote {out / 'activity.parquet'} ({table.num_rows} rows) and {picture}")
