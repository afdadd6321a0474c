"""What users hold: `open` and `connect`, the clients they give, and the adapter from a client to the scheduler's port.

`application` reads a folder, `transport` is the way to a database (`embedded`, `remote` over `blocking` or
`suspending`), `calls` the client, `answers` what comes back, `opening` puts them together. Importing this package
loads nothing: each short command pays only for the modules that it names.
"""
