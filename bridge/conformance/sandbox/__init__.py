"""A function under test in a process of its own, from the judge's side.

`view` says what that process sees, `zygote` starts it, `session` talks to it, and `remote` makes
the function look like one that could be called here. The code that runs in it is in
`bridge.conformance.inside`.
"""
