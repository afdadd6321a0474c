"""Texts that the tests of the syntax share, and the ways to look at their trees.

`LISTINGS` and `OPERATIONS` are the founding listings as printed, `EXAMPLE` is the first example of the language page,
`GRAMMAR` uses every rule of the grammar at least once. `EXAMPLES` are whole contracts, of applications and of pages.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from riffdb.core.diagnostics import Diagnostic
from riffdb.core.spans import Source
from riffdb.syntax import parse
from riffdb.syntax.tokens import tokenize
from riffdb.syntax.tree import Name, Tree
from tests.surface.pages import blocks_of


def parsed(text: str) -> Tree:
    """The tree of a text that must be right."""
    tree, diagnostics = parse(Source("sample.riff", text))
    assert not diagnostics, [(found.message, found.span.start, text) for found in diagnostics]
    return tree


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    """What is wrong in a text."""
    return parse(Source("sample.riff", text))[1]


def token_texts(text: str) -> list[str]:
    """The tokens of a text, as written."""
    return tokenize(Source("sample.riff", text)).texts[:-1]


_PARTS: dict[type, tuple[str, ...]] = {}


def _parts(kind: type) -> tuple[str, ...]:
    if kind not in _PARTS:
        is_node = issubclass(kind, msgspec.Struct) and kind.__module__ == Tree.__module__
        kept = [field.name for field in msgspec.structs.fields(kind) if field.name != "span"] if is_node else []
        _PARTS[kind] = tuple(kept)
    return _PARTS[kind]


def nodes(value: object) -> Iterator[object]:
    """Every node of a tree, parents before their children."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif type(value).__module__ == Tree.__module__:
        yield value
        for part in _parts(type(value)):
            yield from nodes(getattr(value, part))


def names(tree: Tree) -> list[Name]:
    """Every name of a tree."""
    return [node for node in nodes(tree) if isinstance(node, Name)]


ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/reference/language.md", "docs/guides/leases-and-fences.md")
EXAMPLES = {
    **{path.stem: path.read_text("utf-8") for path in sorted((ROOT / "examples").rglob("*.riff"))},
    **{block.place: block.text for page in PAGES for block in blocks_of(ROOT / page) if block.language == "riff"},
}
"""The examples of the repository: applications, and contracts that pages print."""

LISTINGS = r"""
contract Printed version 1 {
enum WorkState { Queued, Running, Complete }

entity WorkItem {
  key (organization_id: uuid, work_id: uuid)
  field state: WorkState
  field lease_owner: optional<uuid>
  field lease_expires_at: optional<timestamp>
  field lease_fence: u64
  field lease_attempts: u64
}

workflow WorkLifecycle {
  entity WorkItem
  state state
  initial Queued
  transition Start from (Queued) to Running
  transition Finish from (Running) to Complete
  lease execution {
    owner lease_owner
    expires_at lease_expires_at
    fencing_token lease_fence
    attempts lease_attempts
    duration_seconds (5, 900)
  }
}

command ClaimWork {
  input request_key: string<128>
  input organization_id: uuid
  input work_id: uuid
  input owner_id: uuid
  input duration: u64
  input expected_revision: u64
  idempotency_key request_key

  mutate WorkItem(organization_id, work_id) as work else Missing {}
  lease claim execution on work owner owner_id duration_seconds duration revision expected_revision
    stale StaleRevision {}
    unavailable AlreadyClaimed {}
    invalid InvalidDuration {}
    exhausted LeaseCounterExhausted {}

  return Claimed { work: work }
}
}
"""

OPERATIONS = r"""
lease renew execution on work owner owner_id fencing_token token duration_seconds duration revision expected_revision
  stale RenewStale {} invalid WrongHolder {} expired LeaseExpired {} exhausted LeaseCounterExhausted {}

lease release execution on work owner owner_id fencing_token token revision expected_revision
  stale ReleaseStale {} invalid WrongHolder {}

lease expire execution on work revision expected_revision
  stale ExpireStale {} active LeaseStillActive {}

lease fence execution on work owner owner_id fencing_token token revision expected_revision
  stale WorkStale {} invalid WrongHolder {} expired LeaseExpired {}
"""

EXAMPLE = r"""
contract WorkQueue version 1 {
  enum WorkState { Queued, Running, Complete, Failed }

  /// One unit of work. Doc comments reach the generated clients and the console.
  entity WorkItem {
    key (organization_id: uuid, work_id: uuid)
    field state: WorkState
    field due_at: timestamp
    field lease_owner: optional<uuid>
    field lease_expires_at: optional<timestamp>
    field lease_fence: u64
    field lease_attempts: u64
    /// when a worker may have it next
    computed available_at: timestamp = max(due_at, coalesce(lease_expires_at, due_at))
    index by_available (organization_id, state, available_at)
  }

  event WorkCompleted { partition_by (organization_id) organization_id: uuid work_id: uuid revision: u64 }

  workflow WorkLifecycle {
    entity WorkItem
    state state
    initial Queued
    transition Start from (Queued) to Running
    transition Finish from (Queued, Running) to Complete
    transition Retry from (Queued, Running) to Queued
    transition Bury from (Queued, Running) to Failed
    lease execution {
      owner lease_owner  expires_at lease_expires_at  fencing_token lease_fence  attempts lease_attempts
      duration_seconds (5, 900)
    }
  }

  // ClaimWork, RenewWork, ReleaseWork, ExpireWork as in the seed; CreateWork, StartWork; and:

  command CompleteWork {
    input request_key: string<128>
    input organization_id: uuid
    input work_id: uuid
    input owner_id: uuid
    input token: u64
    input expected_revision: u64
    idempotency_key request_key
    mutate WorkItem(organization_id, work_id) as work else Missing {}
    lease fence execution on work owner owner_id fencing_token token revision expected_revision
      stale WorkStale {} invalid WrongHolder {} expired LeaseExpired {}
    transition Finish on work revision expected_revision
      stale WorkStale {} illegal AlreadyClosed {}
    emit WorkCompleted { organization_id: organization_id, work_id: work_id, revision: work.revision }
    return Completed { work: work }
  }

  command FailWork {
    input request_key: string<128>
    input organization_id: uuid
    input work_id: uuid
    input owner_id: uuid
    input token: u64
    input expected_revision: u64
    input retry_seconds: u64
    idempotency_key request_key
    mutate WorkItem(organization_id, work_id) as work else Missing {}
    decide work {
      when work.lease_attempts >= 10 apply {
        lease release execution on work owner owner_id fencing_token token revision expected_revision
          stale WorkStale {} invalid WrongHolder {}
        transition Bury on work revision expected_revision stale WorkStale {} illegal AlreadyClosed {}
        return Buried { work: work }
      }
      otherwise apply {
        lease release execution on work owner owner_id fencing_token token revision expected_revision
          stale WorkStale {} invalid WrongHolder {}
        transition Retry on work revision expected_revision stale WorkStale {} illegal AlreadyClosed {}
        set work.due_at = tx.time + seconds(retry_seconds)
      }
    }
    return Retried { work: work }
  }
}

query DueWork($organization_id: uuid, $limit: limit<100> = 32) {
  many due from WorkItem
    where organization_id == $organization_id && state == WorkState.Queued && available_at <= tx.time
    order by available_at, work_id
    take $limit
  return Due { items: due { organization_id work_id due_at revision } }
}

stream WorkActivity($organization_id: uuid) {
  partition organization_id == $organization_id
  event WorkCompleted { organization_id work_id revision }
}

role WorkScheduler {
  query DueWork
  command ClaimWork, RenewWork, CompleteWork, ReleaseWork, FailWork
}

schedule DueWorkItems {
  from query DueWork each items
  due due_at
  claim ClaimWork  renew RenewWork  run CompleteWork  release ReleaseWork  fail FailWork
}
"""

GRAMMAR = r"""
/// doc of contract
contract WorkQueue version 12 {
  enum WorkState { Queued Running, Complete Failed, }
  record Line { sku: string<64>, quantity: u64 price: decimal<12,2> }
  /// One
  ///  two
  entity WorkItem {
    key (organization_id: uuid, work_id: uuid),
    partition_by (organization_id)
    field state: WorkState
    field secret token: optional<string<64>>= null was old_token
    field secret: u64 = 0
    field n: i64 = -5 was m,
    field s: WorkState = WorkState.Queued
    field l: list<Line, 1..256>
    /// when
    computed available_at: timestamp = max(due_at, coalesce(lease_expires_at, due_at)) index by_available (
      organization_id, state desc, available_at asc
    )
    unique by_n (organization_id, n)
    reference parent (organization_id, work_id) -> Parent (organization_id, id)
    invariant positive: n >= -1 && (n * 2 + 1) % 3 != 0 || s is not null
      && state not in (WorkState.Queued, WorkState.Failed) && !(if n > 1 then true else false)
  }
  event E { partition_by (organization_id) organization_id: uuid work_id: uuid, revision: u64 }
  workflow W {
    lease execution { duration_seconds (5, 900) attempts a owner o expires_at e fencing_token f }
    transition Start from (Queued) to Running
    entity WorkItem state state
  }
  bulk command B {
    input items: list<Line, 1..10>
    input key of WorkItem
    input secret secret: string<8>
    input key: uuid = null
    service id: uuid_v7
    idempotency_key key
    read WorkItem(organization_id, "a\u{1F600}\n") as r else Missing {}
    maybe WorkItem.by_n(organization_id, 1.5) as m
    require ok: m is null else Bad { x: 1, m }
    for item in items {
      create WorkItem(item.sku) as c else Exists { c: c } conflict by_n Dup {} conflict Child.parent HasChild {}
        violates positive Neg {}
      init_or_mutate WorkItem(item.sku, -1) as d initialize { a: 1, b, } conflict by_n Dup {}
      set c.lease_fence = 0
      delete WorkItem(item.x) as e else Missing {}
      transition Start on d stale X {}, revision item.revision illegal Y {}
      lease expire execution on e revision item.r stale S {} active A {}
      emit E { organization_id: tx.time + seconds(5) }
      decide c { when c.a == 1 none Nope {} when tx.time > c.b apply { set c.a = 1 return Okay {} } otherwise apply {} }
    }
    return Done {}
  }
  reimport command R {
    input items: list<Line, 1..10>
    idempotency_key k
    reconstitute WorkItem from items else Bad {}
    return Done {}
  }
}
query Q($a: uuid, $limit: limit<100>= 32, $c: optional<cursor> = null) reveals (WorkItem.token, X.y) {
  one w from WorkItem where a == $a else Missing {}
  maybe w2 from WorkItem where a in $a && b not in (1, 2)
  many due from WorkItem where order == $a order by order desc, by asc, take take $limit after $c
  count n from WorkItem where a == 1 by state take 100
  sum s of n from WorkItem where a == 1 take 100
  min min of min from WorkItem where min == min take 100
  return Due { items: due { organization_id, work_id due_at }, w, n: n }
}
query P() { return X {} }
stream S($a: uuid) { partition organization_id == $a event E { a b } where a == 1 event event { event } }
role R { query Q, P command A, B command C stream S }
schedule D { from stream S event E due due_at revision revision claim C renew R run R2 release L fail F }
schedule D2 { from query Q each items claim C run R2 release L due due_at }
"""
