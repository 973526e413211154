"""The core: what is known of a zoo's models and conversations, and who serves a request. Pure.

Numbers come in, decisions go out: no LiteLLM, no database, no clock, no chance. The time and the
random draws of a request are given, so that the same log always folds into the same state, and the
same state always decides alike. It may import `rows`, `costs`, `settings` and the tools of
`runtime` that have no clock.

- *Belief.* `prompt` and `surface` turn a request into features, `prompt_heads` into what they add
  to each model's mean, `rates` into means and how sure they are, `predictor` into all of that
  together; `change` finds out that a model has changed, `answer_heads` what an answer shows.
- *Decision.* `decision` has the forms: `Situation` in, `Decision` out. `adaptive` is the policy of
  the means and of the `plan`, with its `price`, and `trying` what is called to learn; `paper` is
  Algorithm 1. `held` is for requests that have no choice, `second_answer` for what an answer that
  was read is worth. `engine` is the decision of one zoo, from a question to a choice, by the
  `expectations` of each candidate; the proxy and the replay both drive it.
- *Conversations.* `lines` knows which prompts belong together, by the `digests` of their
  beginnings; `hold` is the rule on who stays, `caches` what staying is worth.
- *State.* `zoo_state` folds the entries of the log, in their order, into the policy's state
  (`adaptive_policy`, `paper_policy`, behind the protocol in `policy`): the `account` of each
  service level, and the predictor. `snapshot` and `published` are its forms as JSON and arrays.
"""
