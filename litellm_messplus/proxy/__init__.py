"""The only room that knows LiteLLM. Its modules, in the order in which a request meets them:

plugin            the hooks that LiteLLM calls; whatever happens here, the request goes on
router            a request becomes a ranking of LiteLLM's healthy deployments
surfaces/         how LiteLLM's APIs say things: request, conversation, answer, usage
deployments/      candidates, their replicas and prices, and what a call came to
open_requests     what was decided lately, for the retries and for the answer
explorer          calls to other candidates, in the background and unseen
served_call       LiteLLM's log event becomes the record of the served call
energy_service    the joules of ended calls, where they are measured
labelling         the ended call is shown to the sources of labels
judges            models that grade answers, called through LiteLLM's own router
feedback          what clients say of answers, found by any id and made durable
influence         how often a key may judge, and how much a verdict may move
http              the routes and headers of our own
authentication    LiteLLM's keys, for these routes
page              the page of `page/` on this proxy, and who may see it
monitoring        the status on demand, alerts and metrics by the minute
shared_counters   what all workers counted, as one sum
retention         old requests leave the log, once a day
startup           configuration, database and engines, and then the plugin
composition       all of these put together, started and stopped
checking          the same as a start, without one: `messplus check`
"""
