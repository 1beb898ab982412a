"""The specification: what a broker must do. It imports nothing of ours and nothing foreign.

Its folders, each of which may import those before it: `protocol`, `promises`, `broker`, `rules`, `outputs`, `judging`,
`open_world`, `defects`.
"""
