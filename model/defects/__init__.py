"""Known wrong behaviour of brokers, one file a mechanism.

A defect is a guest of the law: it looks at its steps through hooks (`model.broker.hooks`) and keeps a memory of its
own. Where only a defect explains what came, the failure is recorded under its name, and judging goes on after it
(`model.judging.known_defect`). It may say in which versions it begins and ends (`model.promises.versions`): the
target's version decides which are known of it, and reports say where it is newer than all that were verified.

A habit (`habits.py`) is a way to go on like these, of brokers that are no RabbitMQ; it has no name in any report, and
excuses nobody.
"""
