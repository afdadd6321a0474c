"""The routes of operators that are not plain operations: deploy, and the paths of queries.

A plan that comes over the wire is decoded strictly and made ready once before the database sees it: it must be what
`plan.to_json` writes and nothing else, so that nothing in it is passed over. Absent: reading applications, compiling.
"""

import msgspec

from riffdb.core.errors import RiffError, input_error
from riffdb.core.limits import PLAN_DEPTH_MAX
from riffdb.database.contracts import Contract
from riffdb.http.bodies import check_members, decoded, json_object
from riffdb.http.requests import Request
from riffdb.http.responses import Response, json_answer
from riffdb.plan import Plan
from riffdb.plan.changes import change_json
from riffdb.plan.plan import to_json


async def deploy(request: Request) -> Response:
    """Put a contract on the database."""
    plan = _decode_plan(request.body)
    deployment = await request.database.deploy(request.caller, plan)
    changes = [change_json(change) for change in deployment.changes]
    identity = request.database.contract.hash.hex()
    return json_answer({"outcome": deployment.outcome, "hash": identity, "changes": changes})


async def explain_query(request: Request) -> Response:
    """How a query finds its rows, with parameters in their case."""
    body = json_object(request.body) if request.body else {}
    check_members(body, ("params",))
    params = body.get("params")
    if params is not None and type(params) is not dict:
        raise input_error("params", "must be a JSON object, or left out")
    return json_answer(await request.database.explain(request.caller, request.parts[0], params))


class _Deployment(msgspec.Struct, forbid_unknown_fields=True):
    plan: Plan


def _decode_plan(body: bytes) -> Plan:
    plan: Plan = decoded(body, _Deployment, PLAN_DEPTH_MAX).plan
    if msgspec.json.decode(to_json(plan)) != msgspec.json.decode(body)["plan"]:
        raise input_error("plan", "is not written as this version of RiffDB writes plans; deploy with the same version")
    _check_sound(plan)
    return plan


def _check_sound(plan: Plan) -> None:
    """Make everything of the plan ready once: it comes from outside, and a compiler is not sure to have made it."""
    try:
        contract = Contract(plan)
        for command in plan.commands:
            contract.command(command.name)
        for query in plan.queries:
            contract.query(query.name)
        _ = (contract.rows, contract.event_encoders)
    except RiffError:
        raise
    except Exception as error:  # whatever a plan that no compiler made may cause
        raise input_error("plan", "contradicts itself; deploy what `riffdb deploy` compiles") from error
