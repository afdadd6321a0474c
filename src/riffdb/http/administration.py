"""The routes of operators: deploy, capabilities, history, the paths of queries.

A plan that comes over the wire is decoded strictly and made ready once before the database sees it: it must be what
`plan.to_json` writes and nothing else, so that nothing in it is passed over. Absent: reading applications, compiling.
"""

from typing import Any

import msgspec

from riffdb.core.errors import RiffError, input_error
from riffdb.core.limits import CAPABILITY_SECONDS_MAX, PLAN_DEPTH_MAX
from riffdb.core.types import Type
from riffdb.core.values import decoder, timestamp_text
from riffdb.database.contracts import Contract
from riffdb.http.bodies import check_members, decoded, json_object
from riffdb.http.requests import Request
from riffdb.http.responses import Response, json_answer, lines_answer
from riffdb.plan import Plan
from riffdb.plan.changes import change_json
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.plan import to_json

_LIFETIME = decoder(Type("limit", bound=CAPABILITY_SECONDS_MAX), {})
_MEMBERS = ("role", "operator", "partition", "expires_seconds", "principal")


async def deploy(request: Request) -> Response:
    """Put a contract on the database."""
    plan = _decode_plan(request.body)
    deployment = await request.database.deploy(request.caller, plan)
    changes = [change_json(change) for change in deployment.changes]
    identity = request.database.contract.hash.hex()
    return json_answer({"outcome": deployment.outcome, "hash": identity, "changes": changes})


async def create_capability(request: Request) -> Response:
    """A new capability; its token stands in this answer and nowhere else."""
    wanted = {name: value for name, value in json_object(request.body).items() if value is not None}
    check_members(wanted, _MEMBERS)
    lifetime = wanted.get("expires_seconds")
    created = await request.database.create_capability(
        request.caller,
        role=_role_of(wanted),
        principal=wanted.get("principal"),
        partition=wanted.get("partition"),
        lifetime_seconds=None if lifetime is None else _LIFETIME(lifetime, "expires_seconds"),
    )
    capability = created.capability
    facts = {
        "id": capability.id,
        "token": created.token,
        "role": capability.role or None,
        "expires_at": None if capability.expires_at is None else timestamp_text(capability.expires_at),
    }
    return json_answer(facts, 201)


async def revoke_capability(request: Request) -> Response:
    """End a capability; its facts afterwards."""
    if request.body:
        check_members(json_object(request.body), ())
    return json_answer(await request.database.revoke_capability(request.caller, request.parts[0]))


async def explain_query(request: Request) -> Response:
    """How a query finds its rows, with parameters in their case."""
    body = json_object(request.body) if request.body else {}
    check_members(body, ("params",))
    params = body.get("params")
    if params is not None and type(params) is not dict:
        raise input_error("params", "must be a JSON object, or left out")
    return json_answer(await request.database.explain(request.caller, request.parts[0], params))


async def history(request: Request) -> Response:
    """The commits that wrote a row, newest last."""
    name, path = request.parts
    key = _key_parts(request.database.contract.entity_named(name), path)
    return lines_answer(await request.database.history(request.caller, name, key))


def _role_of(wanted: dict[str, Any]) -> str:
    role, operator = wanted.get("role"), wanted.get("operator", False)
    if operator not in (True, False) or type(operator) is not bool:
        raise input_error("operator", "must be true or false")
    if operator:
        if role is not None:
            raise input_error("role", "cannot stand beside operator; an operator may do everything")
        return ""
    if not isinstance(role, str) or not role:
        raise input_error("role", "must name a role of the contract; or say operator: true")
    return role


def _key_parts(entity: EntityPlan, path: str) -> list[str]:
    """The values of a key in a path, in which an encoded slash looks like one that separates.

    Only texts can hold a slash, so surplus parts belong to the text of the key, if it has just one.
    """
    parts = path.split("/")
    surplus = len(parts) - len(entity.key)
    texts = [position for position, part in enumerate(entity.key) if part.type.kind == "string"]
    if surplus > 0 and len(texts) == 1:
        end = texts[0] + surplus + 1
        parts[texts[0] : end] = ["/".join(parts[texts[0] : end])]
    return parts


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
