"""The HTTP edge: routes, problems, the server. It translates and decides nothing.

In the order of a request: `listening` (address to socket), `server` (granian on our loop, signals, stop), `edge` (the
one way of every request), `bodies` (bounded reading, JSON), `routes` (the table) with `administration` (operators),
`responses` (answers, problems). Absent: authority, which is the database's at every operation; sessions, cookies, TLS.
"""
