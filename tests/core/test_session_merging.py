"""Two programs change one session: no tag is lost, and two notes are both kept."""

# ruff: noqa: F811  `session` is a fixture of another file

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_session import detector, own_root, pictures, session  # noqa: F401  fixtures

from idecode_core.errors import SessionError
from idecode_core.session import Session
from idecode_core.session.store import Content


def test_two_programs_that_tag_other_inputs_both_keep_their_tags(session):
    other = Session.open("monday")
    a, b, c = session.inputs[:3]
    session.tag(a, "check")
    session.tag(c, "one")
    session.save()
    other.tag(b, "wrong verdict")
    other.tag(c, "two")
    other.settings = replace(other.settings, epsilon=0.1)
    other.save()
    merged = Session.open("monday")
    assert merged.tags[a.content_hash] == ("check",)
    assert merged.tags[b.content_hash] == ("wrong verdict",)
    assert set(merged.tags[c.content_hash]) == {"one", "two"}
    assert merged.settings.epsilon == 0.1
    assert session.reload().tags == merged.tags
    assert session.settings.epsilon == 0.1


def test_two_notes_on_one_input_are_refused_with_both_kept(session):
    other = Session.open("monday")
    first = session.inputs[0]
    session.note(first, "blurred")
    session.save()
    other.note(first, "a shoe")
    with pytest.raises(
        SessionError, match=r"The note on 0\.png was changed by another program too, to: 'blurred'"
    ):
        other.save()
    assert other.notes[first.content_hash] == "a shoe"  # still here
    assert Session.open("monday").notes[first.content_hash] == "blurred"


CHANGES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 4), st.sampled_from(["check", "wrong verdict", "mine"])),
    max_size=12,
)


@given(CHANGES)
@settings(max_examples=25, deadline=None)
def test_no_tag_that_anybody_added_is_lost_in_any_order_of_saving(changes):
    """Two programs add tags and save in any order; in the end all that were added are there."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        content = Content(*_parts())
        first = Session(Path(place) / "s", content)
        first.save()
        programs = {True: Session.open(first.folder), False: Session.open(first.folder)}
        added: set[tuple[str, str]] = set()
        for which, i, tag in changes:
            one = programs[which].inputs[i]
            programs[which].tag(one, *programs[which].tags.get(one.content_hash, ()), tag)
            programs[which].save()
            added.add((one.content_hash, tag))
        found = {(key, tag) for key, tags in Session.open(first.folder).tags.items() for tag in tags}
        assert found == added


def _parts():
    from idecode_core.conformal.settings import Settings
    from idecode_core.session.store import Input, Mark

    inputs = tuple(Input(f"{i}.png", f"{i:032x}", path=f"/nowhere/{i}.png") for i in range(5))
    mark = Mark("d", "d", "image", 10, "0" * 64, "0" * 64)
    return mark, Settings(n=2), inputs, np.ones((5, 2)), np.full(5, 0.5)
