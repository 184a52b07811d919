"""Edges, references and statements of a derived index; see ``govtool.graph.delta.derive``."""

from __future__ import annotations

from govtool.graph.codes import KIND_MASK
from govtool.graph.delta.splicing import Splicing, placed
from govtool.model.kinds import EdgeKind


def splice_edges(s: Splicing) -> None:
    """Put the edges of what is looked at among the others, in the order of both of their ends."""
    import numpy as np

    from govtool.arrays.sets import marked_places

    old, new, nodes, derivations = s.old, s.new, s.axes["node"], s.axes["derivation"]
    removed = marked_places(~derivations.kept, old["edge_derivation"])
    s.removed_edges = removed
    source, target = s.node[new["edge_source"]], s.node[new["edge_target"]]
    read = (new["edge_tag"] & KIND_MASK) == EdgeKind.READ
    owner = s.derivation[new["edge_derivation"]]
    places, ends, _ = s.around("forward", new["edge_source"])
    places = places[derivations.kept[old["edge_derivation"][places]]]
    order, before = placed(
        (source, read, target, owner),
        (
            nodes.numbers(old["edge_source"][places]),
            (old["edge_tag"][places] & KIND_MASK) == EdgeKind.READ,
            nodes.numbers(old["edge_target"][places]),
            derivations.numbers(old["edge_derivation"][places]),
        ),
        places,
        ends,
    )
    axis = s.axis("edge", removed, before)
    s.edge = np.empty(len(order), np.int64)
    s.edge[order] = axis.inserted_array
    s.out |= {
        "edge_source": source[order],
        "edge_target": target[order],
        "edge_derivation": owner[order],
        "edge_label": s.label[new["edge_label"]][order],
        **{name: new[name][order] for name in ("edge_tag", "edge_arm")},
        "forward.owners": source[order],
    }
    _entering(s)


def _entering(s: Splicing) -> None:
    """The edges into nodes, in the order of the edges."""
    import numpy as np

    from govtool.arrays.sets import distinct

    old, new, nodes, edges = s.old, s.new, s.axes["node"], s.axes["edge"]
    target = s.node[new["edge_target"]]
    places, ends, _ = s.around("backward", new["edge_target"])
    goals = distinct(old["edge_target"][s.removed_edges].astype(np.int64))
    seen, _ = s.ranges("backward", goals, old)
    removed = seen[~edges.kept[old["backward_edge"][seen]]]
    places = places[edges.kept[old["backward_edge"][places]]]
    entering = old["backward_edge"][places].astype(np.int64)
    order, before = placed(
        (target, s.edge),
        (nodes.numbers(old["edge_target"][entering]), edges.numbers(entering)),
        places,
        ends,
    )
    s.axis("back", removed, before)
    s.out |= {"backward_edge": s.edge[order], "backward.owners": target[order]}


def splice_references(s: Splicing) -> None:
    """Put the references of what is looked at among the others."""
    import numpy as np

    old, new, nodes, derivations = s.old, s.new, s.axes["node"], s.axes["derivation"]
    removed = np.flatnonzero(~derivations.kept[old["reference_derivation"]])
    node_old, mine = s.node_old[new["reference"]], s.chosen["node"]
    ahead = np.zeros(len(s.node), np.int64)
    ahead[mine] = nodes.before
    ends = np.where(
        node_old >= 0,
        np.searchsorted(old["reference"], node_old, "right"),
        np.searchsorted(old["reference"], ahead[new["reference"]]),
    )
    places = np.flatnonzero(np.isin(old["reference"], node_old[node_old >= 0]))
    places = places[derivations.kept[old["reference_derivation"][places]]]
    node, owner = s.node[new["reference"]], s.derivation[new["reference_derivation"]]
    kept = (nodes.numbers(old["reference"][places]), derivations.numbers(old["reference_derivation"][places]))
    order, before = placed((node, owner), kept, places, ends)
    s.axis("reference", removed, before)
    s.out |= {
        "reference": node[order],
        "reference_derivation": owner[order],
        "reference_rows": s.node[new["reference_rows"]][order],
    }


def splice_statements(s: Splicing) -> None:
    """Statements: one of which a derivation stays keeps its number, others come last."""
    import numpy as np

    from govtool.arrays.sets import distinct

    change, old, new, derivations = s.change, s.old, s.new, s.axes["derivation"]
    count = len(old["statement"]) - 1
    names = ("source", "file", "session", "first_seen", "line", "fingerprint")
    c = change.looked_at.columns
    fresh = np.flatnonzero(change.is_new)
    files = np.zeros(len(change.texts), bool)
    files[c["d.file"][fresh]] = True
    near = np.flatnonzero(files[s.kept.columns["d.file"]])
    stays = np.ones(derivations.old_count, bool)
    stays[change.removed] = False
    near = near[stays[near]]
    keys = zip(*(s.kept.columns[f"d.{name}"][near].tolist() for name in names), strict=True)
    known = dict(zip(keys, old["derivation_statement"][near].tolist(), strict=True))
    found = np.zeros(len(change.is_new), np.int64)
    context = np.flatnonzero(~change.is_new)
    found[context] = old["derivation_statement"][change.before[context]]
    more = 0
    for place, *key in zip(fresh.tolist(), *(c[f"d.{name}"][fresh].tolist() for name in names), strict=True):
        if tuple(key) not in known:
            known[tuple(key)] = count + more
            more += 1
        found[place] = known[tuple(key)]
    s.axis("statement", [], [count] * more)
    s.out["derivation_statement"] = found
    alive = np.sort(new["statement_derivation"].astype(np.int64))
    statement, owner = found[alive], s.derivation[alive]
    gone = derivations.removed
    touched = distinct(
        np.concatenate([old["derivation_statement"][gone].astype(np.int64), statement[statement < count]])
    )
    entries, whose = s.ranges("statement", touched, old)
    stay = derivations.kept[old["statement_derivation"][entries]]
    ends = old["statement"].astype(np.int64)[np.minimum(statement, count - 1) + 1] if count else statement * 0
    places = entries[stay]
    kept = (touched[whose[stay]], derivations.numbers(old["statement_derivation"][places]))
    order, before = placed((statement, owner), kept, places, ends)
    s.axis("stated", entries[~stay], before)
    s.out |= {"statement_derivation": owner[order], "statement.owners": statement[order]}
