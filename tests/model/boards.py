"""A contract for queries alone: two entities, indexes each way, and a query for every form that RiffQL has.

Rows are put into a store as they are, without a command, so that a test may have any number of any kind.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from riffdb.compiler import compile
from riffdb.core.diagnostics import render
from riffdb.core.layout import Row
from riffdb.core.records import Batch, Mutation
from riffdb.core.spans import Source
from riffdb.database.contracts import Contract
from riffdb.plan import Plan
from riffdb.storage.protocol import Store

BOARDS = """
contract Boards version 1 {
  enum Stage { New, Active, Held, Done }

  entity Card {
    key (board: uuid, id: u64)
    field stage: Stage
    field due: timestamp
    field size: i64
    field weight: u64
    field price: decimal<12,2>
    field owner: optional<uuid>
    field label: optional<string<16>>
    field hue: optional<Stage>
    field open: bool
    field day: date
    field secret pin: optional<string<8>>
    computed late: timestamp = max(due, due + seconds(weight % 5))
    index by_due (board, due)
    index by_due_falling (board, due desc, size)
    index by_stage (board, stage, due)
    index by_stage_label (board, stage, label desc, weight)
    index by_owner (board, owner, due)
    index by_owner_stage (board, owner, stage, due)
    index by_label (board, label desc, weight)
    index by_hue (board, hue, day desc)
    index by_size (board, size)
    index by_late (board, late)
  }

  entity Tag {
    key (board: uuid, name: string<16>)
    field code: optional<u64>
    field card: u64
    unique by_code (board, code)
  }
}

query Soonest($board: uuid, $limit: limit<100> = 10, $from: optional<cursor>) {
  many cards from Card where board == $board order by due take $limit after $from
  return Cards { cards: cards, next: cards.next }
}
query Before($board: uuid, $limit: limit<100> = 10, $until: optional<cursor>) {
  many cards from Card where board == $board order by due desc, size take $limit before $until
  return Cards { cards: cards { id due size }, next: cards.next }
}
query Window($board: uuid, $since: timestamp, $limit: limit<100> = 10, $from: optional<cursor>) {
  many cards from Card where board == $board && stage == Stage.Active && due > $since && due <= tx.time
    order by due desc take $limit after $from
  return Cards { cards: cards { id due }, next: cards.next }
}
query Some($board: uuid, $limit: limit<100> = 10, $from: optional<cursor>) {
  many cards from Card where board == $board && stage in (Stage.New, Stage.Held, Stage.New)
    order by due take $limit after $from
  return Cards { cards: cards { id due stage }, next: cards.next }
}
query Either($board: uuid, $limit: limit<100> = 10, $until: optional<cursor>) {
  many cards from Card where board == $board && (stage == Stage.New || stage == Stage.Done)
    order by due desc take $limit before $until
  return Cards { cards: cards { id due stage }, next: cards.next }
}
query Listed($board: uuid, $stages: list<Stage, 1..4>, $limit: limit<100> = 10, $from: optional<cursor>) {
  many cards from Card where board == $board && stage in $stages order by label desc, weight take $limit after $from
  return Cards { cards: cards { id label weight stage }, next: cards.next }
}
query ByStage($board: uuid, $limit: limit<100> = 10, $from: optional<cursor>) {
  many cards from Card where board == $board order by stage, due take $limit after $from
  return Cards { cards: cards { id stage due }, next: cards.next }
}
query ByHue($board: uuid, $limit: limit<100> = 10, $until: optional<cursor>) {
  many cards from Card where board == $board order by hue desc, day take $limit before $until
  return Cards { cards: cards { id hue day }, next: cards.next }
}
query ByLabel($board: uuid, $limit: limit<100> = 10, $from: optional<cursor>) {
  many cards from Card where board == $board order by label, weight desc take $limit after $from
  return Cards { cards: cards { id label weight }, next: cards.next }
}
query Filtered($board: uuid, $owner: optional<uuid>, $stage: optional<Stage>, $limit: limit<100> = 10,
               $from: optional<cursor>) {
  many cards from Card where board == $board && ($owner is null || owner == $owner)
    && ($stage is null || stage == $stage) order by due take $limit after $from
  return Cards { cards: cards { id owner stage due }, next: cards.next }
}
query Unowned($board: uuid, $limit: limit<100> = 10, $from: optional<cursor>) {
  many cards from Card where board == $board && owner is null order by due desc take $limit after $from
  return Cards { cards: cards { id due }, next: cards.next }
}
query Residual($board: uuid, $least: i64, $stages: list<Stage, 0..4>, $limit: limit<100> = 10,
               $from: optional<cursor>) {
  many cards from Card where board == $board && size != $least && stage not in $stages
    && (open || price < 50.00)
    order by due take $limit after $from
  return Cards { cards: cards { id due size price stage }, next: cards.next }
}
query ResidualOfTwo($board: uuid, $limit: limit<100> = 10, $until: optional<cursor>) {
  many cards from Card where board == $board && stage in (Stage.New, Stage.Active) && (open || size > 2)
    order by due take $limit before $until
  return Cards { cards: cards { id due open }, next: cards.next }
}
query Numbers($board: uuid, $stage: optional<Stage>) {
  count all from Card where board == $board take 40
  count stages from Card where board == $board by stage take 100000
  count hues from Card where board == $board by hue take 100000
  count some from Card where board == $board && stage in (Stage.Held, Stage.Done) take 100000
  sum sizes of size from Card where board == $board take 100000
  sum weights of weight from Card where board == $board && ($stage is null || stage == $stage) take 100000
  sum prices of price from Card where board == $board take 100000
  min least of size from Card where board == $board take 100000
  max greatest of size from Card where board == $board take 100000
  max latest of late from Card where board == $board take 1
  min first of day from Card where board == $board && stage in (Stage.New, Stage.Done) take 100000
  return Numbers {
    all: all, stages: stages, hues: hues, some: some, sizes: sizes, weights: weights, prices: prices, least: least,
    greatest: greatest, latest: latest, first: first
  }
}
query OneCard($board: uuid, $id: u64, $code: u64, $name: string<16>) {
  one card from Card where board == $board && id == $id else NoCard { id: $id, asked: tx.time }
  maybe tag from Tag where board == $board && code == $code
  maybe named from Tag where board == $board && name == $name && card > 2
  many cards from Card where board == $board && stage == Stage.New order by due take 3
  return Found {
    card: card { id due revision }, tag: tag { name code }, named: named, cards: cards { id },
    size_and_one: card.size / 2 + 1, is_late: card.due < tx.time, card_of_tag: (if tag is null then 0 else tag.card),
    revision: card.revision, again: $name
  }
}
query Pins($board: uuid) reveals (Card.pin) {
  many cards from Card where board == $board order by id take 100
  return Pins { cards: cards { id pin } }
}
query PinOf($board: uuid, $id: u64) reveals (Card.pin) {
  maybe card from Card where board == $board && id == $id
  return Pin { pin: (if card is null then null else card.pin) }
}
query Tags($board: uuid, $limit: limit<100> = 10, $from: optional<cursor>) {
  many tags from Tag where board == $board order by code desc take $limit after $from
  return Tags { tags: tags { name code }, next: tags.next }
}
"""


def compiled(text: str) -> Plan:
    """The plan of a contract's text."""
    compilation = compile("boards", [Source("boards.riff", text)])
    assert compilation.plan is not None, "\n".join(render(found) for found in compilation.diagnostics)
    return compilation.plan


@cache
def boards_plan() -> Plan:
    """The plan of `BOARDS`."""
    return compiled(BOARDS)


async def put_rows(
    store: Store, contract: Contract, entity: str, rows: Sequence[Row], gone: Sequence[Row] = ()
) -> None:
    """Put rows into the store, or take them out, as no command would."""
    table = contract.tables[entity]
    async with store.transaction() as transaction:
        keys = [table.key_of(row) for row in (*rows, *gone)]
        there = await transaction.rows(table, keys)
        mutations = [Mutation(table.name, table.key_of(row), row, table.key_of(row) in there) for row in rows]
        mutations += [Mutation(table.name, table.key_of(row), None, True) for row in gone if table.key_of(row) in there]
        await transaction.write(Batch(mutations=mutations))


def card(board: bytes, number: int, **changes: Any) -> Row:
    """A row of `Card`; what is computed of it is computed here."""
    values: dict[str, Any] = {
        "board": board,
        "id": number,
        "stage": 0,
        "due": 0,
        "size": 0,
        "weight": 0,
        "price": 0,
        "owner": None,
        "label": None,
        "hue": None,
        "open": True,
        "day": 0,
        "pin": None,
    } | changes
    late = values["due"] + values["weight"] % 5 * 1_000_000
    return (*values.values(), late, 1, 1)
