"""The one door: every command, query and operator's act enters here, whatever the edge.

In the order of a command: `callers` (who asks), `contracts` (the deployed plan, made ready, with its `codecs`),
`admission` (decode, authorize, derive), `doors` (who runs the batch), `pipeline` (seal, evaluate, commit, answer),
`records` (what is written). Beside it: `layouts` (plan to tables), `acts` (deploy, capabilities), `tokens`,
`provenance`, `reading` (queries), and `database`, which holds them together. Absent: HTTP, files of applications, any
way to write a row but a command.
"""
