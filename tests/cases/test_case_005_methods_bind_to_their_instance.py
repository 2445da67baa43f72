"""A decorated method that was fetched from one instance stays with it, however calls are crossed."""

import hotspan
from hotspan.testing import capture


class Agent:
    """An agent with a name."""

    def __init__(self, name):
        self.name = name

    @hotspan.agent
    def run(self, other=None):
        """Note the name on the span, call the other one, and note it again."""
        hotspan.current().set("name", self.name)
        found = other() if other is not None else []
        hotspan.current().set("name_after", self.name)
        return [self.name, *found]


def test_bound_methods_do_not_mix():
    """Results and recorded attributes belong to the instance that was asked."""
    a, b = Agent("a"), Agent("b")
    run_a, run_b = a.run, b.run
    with capture() as captured:
        assert run_b(run_a) == ["b", "a"]
        assert run_a(run_b) == ["a", "b"]

    for span in captured.spans:
        assert span.attributes["name"] == span.attributes["name_after"]
    assert [span.attributes["name"] for span in captured.spans] == ["a", "b", "b", "a"]
    assert Agent.run is Agent.__dict__["run"]
    assert a.run.__self__ is a
