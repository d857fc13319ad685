"""Two programs, one session: what each of them changed since it read the session last, put together."""

from dataclasses import replace
from typing import Any

from idecode_core.errors import SessionError
from idecode_core.files.names import printable
from idecode_core.session.store import Content


def merged(name: str, ours: Content, base: Content, theirs: Content) -> Content:
    """Our content and what was saved in the meantime, each change kept; `base` is what we read or saved last."""
    if theirs.revision == base.revision:
        return replace(ours, revision=theirs.revision)
    if [item.content_hash for item in theirs.inputs] != [item.content_hash for item in base.inputs]:
        raise SessionError(
            f"The session {name} was given other inputs by another program. Nothing is lost: open it again to see "
            "them, or save this one under another name."
        )
    tags, notes = dict(theirs.tags), dict(theirs.notes)
    for item in ours.inputs:
        key = item.content_hash
        if ours.tags.get(key) != base.tags.get(key):
            kept = ours.tags.get(key, ())
            if theirs.tags.get(key) != base.tags.get(key):
                kept = tuple(dict.fromkeys((*kept, *theirs.tags.get(key, ()))))
            put(tags, key, kept)
        if ours.notes.get(key) != base.notes.get(key):
            if theirs.notes.get(key) not in (base.notes.get(key), ours.notes.get(key)):
                raise SessionError(
                    f"The note on {printable(item.name)} was changed by another program too, to: "
                    f"{printable(theirs.notes.get(key, ''))[:200]!r}. Nothing is lost: reload the session, then write yours again."
                )
            put(notes, key, ours.notes.get(key, ""))
    pinned = tuple(run for run in theirs.pinned if run in ours.pinned or run not in base.pinned)
    pinned = (*pinned, *(run for run in ours.pinned if run not in base.pinned and run not in pinned))
    judged = ours if ours.settings != base.settings else theirs
    return replace(
        theirs,
        settings=judged.settings,
        score_vectors=judged.score_vectors,
        p_values=judged.p_values,
        tags=tags,
        notes=notes,
        pinned=pinned,
        title=ours.title if ours.title != base.title else theirs.title,
    )


def put(table: dict[str, Any], key: str, value: Any) -> None:
    """An entry, or none where there is nothing to say."""
    table.pop(key, None)
    if value:
        table[key] = value
