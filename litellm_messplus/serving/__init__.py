"""The only room that knows LiteLLM. Each module imports only those below it:

litellm_fit       tries the installed LiteLLM before anything starts, then starts
startup           configuration, database and engines, and then the plugin
checking          the same as a start, without one: `messplus check`
plugin            the hooks that LiteLLM calls; whatever happens here, the request goes on
composition       all parts of the plugin put together, started and stopped
router            a request becomes a ranking of LiteLLM's healthy deployments
page              the page of `page/` on this proxy, and who may see and change what
zoos              administrators see and change how far a zoo is switched on
before            what serves as before the router, of which requests; what is decided in shadow
second            another model's answer in place of one that looks bad
decided           a request is read, placed, decided and recorded
reading           its words and its features, before it is decided
buying            whether labels of its answers are bought, and by whose unseen calls
label_purse       what bought labels may cost, by the log
judges            models that grade answers, called through LiteLLM's own router
visibility        a decision as attributes of LiteLLM's span
repeating         a request repeated to another candidate, in its place or unseen, and its end
served            the call that the user saw ends: by what the client got, and LiteLLM's report
ends              a call has ended: its record, and all parts that are notified of it
failures          who failed, by the error that ended a call
labelling         the ended call is shown to the sources of labels
scores            what the operator's function, or the checks, say of an answer
http              the routes and headers of our own
feedback          the request that an id means, and what clients say of it, made durable
influence         how often a key may judge, and how much a verdict may move
open_requests     what was decided lately, for the retries and for the answer
holding/          who serves a conversation: read before a decision, updated by answers and ends
modes             whether a zoo watches, routes a share, or all; returns it where service suffers
deployments/      candidates: replicas, prices, what they can take, what a call came to
surfaces/         how LiteLLM's APIs say things: request, level, conversation, answer, usage
authentication    LiteLLM's keys, for these routes
monitoring        the status on demand, alerts and metrics by the minute; old requests leave
metrics           what Prometheus reads
shared_counters   what all workers counted, as one sum; whether this worker routes now
litellm_limits    what LiteLLM would refuse for its limits of rate and budgets
litellm_seam      every name of LiteLLM that it does not document

The road of a chat request from the hook to the log, by the rooms in the order of their first call,
and that of its answer:

decided: plugin, router, deployments, surfaces, open_requests, before, decided, reading, encoders,
    holding, deciding, feedback, journal, metrics, repeating, visibility
answered: plugin, served, open_requests, deployments, surfaces, scores, ends,
    journal, metrics, holding
"""
