"""What is decided, held, bought and judged: all that knows the state, and no LiteLLM.

A worker's hands (`serving/`) read a request as plain data (`asked.Asked`), and get back an `Order`:
what to call, and what to remember until the call ends. What ended comes back as records. Each
module imports only those below it:

brain             one object a process: a request in, an order out, all of it logged
decided           a request is placed in its conversation, decided, and recorded
arms              what is routed, and what is served as before; what of that is decided in shadow
buying            whether labels of its answers are bought, and by whose unseen calls
label_purse       what bought labels may cost, by the log
line_log          the lines of other workers, and of before a start, read from the log
holds             who serves a conversation: read before a decision, updated by answers and ends
pinboard          the same among the workers of one machine, before it is in the log
levels            the promise that a request counts towards
modes             whether a zoo watches, routes a share, or all; returns it where service suffers
labelling         ended calls are shown to the sources of labels, their findings logged
influence         how often a key may judge, and how much a verdict may move
asked             a request as the hands read it
"""
