"""The only room that knows LiteLLM: the hands of the brain. Each module imports those below it:

litellm_fit       tries the installed LiteLLM before anything starts, then starts
startup           the configuration, the way to the brain, and then the plugin
inside            the brain in this process
checking          the same as a start, without one: `messplus check`
configuration     the settings and zoos, and what LiteLLM's own would take from them
plugin            the hooks that LiteLLM calls; whatever happens here, the request goes on
composition       all parts of the plugin put together, started and stopped
router            LiteLLM's healthy deployments in, those to try next out, as the brain orders
second            another model's answer in place of one that looks bad
reading           a request becomes the plain data that the brain decides by
repeating         a request repeated to another candidate, in its place or unseen, and its end
served            the call that the user saw ends: by what the client got, and LiteLLM's report
ends              a call has ended: its record, and what the brain learns of it
failures          who failed, by the error that ended a call
scores            what the operator's function, or the checks, say of an answer
visibility        a decision as headers of the answer, and as attributes of LiteLLM's span
open_requests     what was decided lately, for the retries and for the answer
forwarding        the routes under `/messplus`: to the brain and back
link              the connection to the brain, and what is kept while it is away
worker_hands      what the brain asks: LiteLLM's keys, the calls of judges, ids
judges            the calls of models that grade answers, through LiteLLM's own router
deployments/      candidates: replicas, prices, what they can take, what a call came to
surfaces/         how LiteLLM's APIs say things: request, level, conversation, answer, usage
litellm_limits    what LiteLLM would refuse for its limits of rate and budgets
litellm_seam      every name of LiteLLM that it does not document

The road of a chat request from the hook to the log, by the rooms in the order of their first call,
and that of its answer:

decided: plugin, router, deployments, surfaces, open_requests, reading, brain, encoders,
    journal, scores, repeating, visibility
answered: plugin, served, open_requests, deployments, surfaces, scores, ends, brain,
    journal
"""
