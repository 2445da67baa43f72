"""A real model to generate with, and what tests put into its `generate`.

Importing this needs torch and transformers.
"""

import transformers

from hotspan.pipelines.engines.tiny_model import tiny_model_folder

N = 6  # tokens that the tests ask for


def load():
    """Return a new tiny model that decodes greedily, and never ends an answer by itself."""
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_model_folder()).eval()
    model.generation_config.update(do_sample=False, temperature=None, eos_token_id=None)
    return model


class Recording(transformers.generation.streamers.BaseStreamer):
    """A streamer of a user's own: it keeps what it was called with, and does something at each `put`."""

    def __init__(self, on_put=lambda: None):
        self.calls = []
        self.on_put = on_put

    def put(self, value):
        """Take the prompt, then tokens."""
        self.calls.append(value.tolist())
        self.on_put()

    def end(self):
        """Take the end."""
        self.calls.append("end")


class OnStep(transformers.LogitsProcessor):
    """Calls `act(step, scores)` after each forward pass, from step 0; what it returns replaces the scores."""

    def __init__(self, act):
        self.act, self.n_steps = act, 0

    def __call__(self, _input_ids, scores):
        """Take the scores of the next token."""
        changed = self.act(self.n_steps, scores)
        self.n_steps += 1
        return scores if changed is None else changed


def step_by(clock):
    """Return arguments by which the first pass takes 100 ms of a fake clock, and each other one 10 ms."""

    def act(n_steps, _scores):
        clock.advance(ms=10 if n_steps else 100)

    return {"logits_processor": [OnStep(act)], "max_new_tokens": N}


def ending(row, n_steps, end):
    """Return a processor that makes a row choose the token `end` at a step."""

    def act(step, scores):
        if step != n_steps:
            return None
        forced = scores.clone()
        forced[row] = -float("inf")
        forced[row, end] = 0
        return forced

    return OnStep(act)
