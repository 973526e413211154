"""All that is decided, held, bought, judged and learned, and knows no LiteLLM.

A worker's hands (`serving/`) read a request as plain data (`messages.Asked`), and get an `Order`:
what to call, and what to remember until the call ends. What ended comes back as records. What
either asks of the other is in `contract`; over a socket each method is a message. Each module
imports only those below it:

keeper            starts the process of the brain when its worker is connected to none
process           the brain in a process of its own, which a worker starts, or as a service
listener          the connections of the workers, what they are told, and what is acknowledged
brain             the brain of a database: its parts, started and stopped
opening           the database at this code's version, and the engines restored from it
judges            models that grade answers, and how far they are believed
line_log          the lines of before a start, read from the log
lease             one process of all on a database is the brain
place             where the brain is found, and what it is started with
wire              messages as bytes; who is let in
road              the road of a request: what each message of a worker does
arms              the promise of a request; whether it is routed or served as before, and decided
                  in shadow
live_catalog      the models that LiteLLM's router shows, reported to the log
labelling         ended calls are shown to the sources of labels, their findings logged
authors           who wrote an answer that LiteLLM's cache repeats
web               the routes under `/messplus` as one application, and who may see the page
zoos              administrators see and change how far a zoo is switched on
pending           what is remembered of a request until its calls have ended
decided           a request is placed in its conversation, decided, and recorded
buying            whether labels of its answers are bought, for how much, by whose unseen calls
holds             who serves a conversation: read before a decision, updated by answers and ends
access            who may use a route
routes            what a client is told of feedback, requests and status, and where they fail
modes             whether a zoo watches, routes a share, or all; returns it where service suffers
feedback          the request that an id means, and what clients say of it, made durable
influence         how often a key may judge, and how much a verdict may move
monitoring        the status on demand, alerts and metrics by the minute; old requests leave, lost
                  ones end
metrics           what Prometheus reads
workers           who is connected, and what they have counted
contract          what a worker asks of the brain, and the brain of a worker
messages          the data that passes between them
"""
