"""All that is decided, held, bought, judged and learned, and knows no LiteLLM.

A worker's hands (`serving/`) read a request as plain data (`messages.Asked`), and get an `Order`:
what to call, and what to remember until the call ends. What ended comes back as records. Each
module imports only those below it:

brain             one object a process: a request in, an order out, all of it logged
opening           the database at this code's version, and the engines restored from it
zoos              administrators see and change how far a zoo is switched on
routes            the routes under `/messplus`, and what a client is told where they fail
arms              the promise of a request; whether it is routed or served as before, and decided
                  in shadow
decided           a request is placed in its conversation, decided, and recorded
buying            whether labels of its answers are bought, for how much, by whose unseen calls
judges            models that grade answers, and how far they are believed
line_log          the lines of other workers, and of before a start, read from the log
holds             who serves a conversation: read before a decision, updated by answers and ends
pinboard          the same among the workers of one machine, before it is in the log
modes             whether a zoo watches, routes a share, or all; returns it where service suffers
live_catalog      the models that LiteLLM's router shows, reported to the log
labelling         ended calls are shown to the sources of labels, their findings logged
feedback          the request that an id means, and what clients say of it, made durable
influence         how often a key may judge, and how much a verdict may move
authors           who wrote an answer that LiteLLM's cache repeats
monitoring        the status on demand, alerts and metrics by the minute; old requests leave, lost
                  ones end
metrics           what Prometheus reads
shared_counters   what all workers counted, as one sum; whether this worker routes now
messages          what passes between the hands and the brain
"""
