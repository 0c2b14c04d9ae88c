"""Draw the trace of a run as SVG.

    draw          `draw`: the whole picture
    frame         positions: time to the right, a row for each peer; breaks in time
    lanes         the life of each peer in the trace: absences, epochs, partitions
    epoch_lines   epochs as lines across the lanes
    marks         single events on the lanes, thinned out
    glyphs        the sign for each kind of event
    legend        the legend, the summary and the list of laws
    svg           SVG shapes, colours and text widths

In: a `Trace`. Out: SVG text; equal traces give equal bytes. This room imports only `antiphon.sim.trace`.
"""
