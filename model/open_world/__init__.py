"""The open world: what a channel promises, judged where queues hold what nobody saw.

Traffic of an application has no barriers, and what it does is not known in advance: other clients publish, consume and
declare. So any message may be ready in any queue, and no delivery is owed. What stays is what a broker promises on one
connection: replies and their order, delivery tags, settlements, limits, confirms, returns, cancels, closes.

An input that was sent may not have been processed yet. Each rule here is told so that this makes no difference: what a
client has settled counts as settled when it is sent, and what must be refused shows by the reply to a later request.
A rule that cannot be decided says why, and blames nobody. The cost of a frame does not depend on what came before it.
"""
