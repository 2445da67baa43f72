"""One colour a stage."""

from __future__ import annotations

from hotspan.exporters.reports import palette
from hotspan.tracer import semconv


def test_known_stages_have_colours_of_their_own():
    """No two stages that do work share a colour, and none has that of unattributed time."""
    working = [stage for stage in semconv.STAGES if stage not in semconv.ENVELOPES]
    colours = {palette.colour(stage) for stage in working}
    assert len(colours) == len(working)
    assert palette.UNATTRIBUTED not in colours


def test_envelopes_are_grey():
    """The time of request, agent and step is unattributed, and looks like it."""
    assert {palette.colour(stage) for stage in (*semconv.ENVELOPES, None)} == {palette.UNATTRIBUTED}


def test_a_stage_of_ones_own_keeps_its_colour():
    """The colour follows from the name alone, whatever that is made of."""
    assert palette.colour("postprocess") == palette.colour("postprocess")
    assert palette.colour("\ud800").startswith("#")
