"""Names in the store: branches and tags, as they are read."""

from __future__ import annotations

from govtool.errors import IntegrityError, UsageError
from govtool.store import log
from govtool.store.backends.objects import ReadableObjects
from govtool.store.codec import unseal
from govtool.store.commit import Commit, branch_key
from govtool.store.names import check_branch


def tag_key(name: str) -> str:
    """The key of a tag."""
    return f"tags/{branch_key(name)}"


def is_ref_name(text: str) -> bool:
    """Return whether a branch or tag may be called that."""
    try:
        check_branch(text)
    except UsageError:
        return False
    return True


def read_tag(objects: ReadableObjects, name: str) -> Commit | None:
    """The commit of a tag, verified, or ``None`` if there is no such tag."""
    if not is_ref_name(name):
        return None
    data = objects.get(tag_key(name))
    if data is None:
        return None
    body = unseal(data, tag_key(name))
    branch, seq, commit_id = str(body.get("branch")), body.get("seq"), body.get("id")
    commit = log.read_slot(objects, branch, seq) if isinstance(seq, int) else None
    if commit is None or commit.id != commit_id:
        raise IntegrityError(
            f"tag {name!r} names commit {str(commit_id)[:7]}, but slot {seq} of branch {branch!r} is not that commit",
            code="store.corrupt-chain",
            location=tag_key(name),
            hint="run govtool store fsck",
        )
    return commit


def branch_names(objects: ReadableObjects) -> list[str]:
    """The branches that have commits, closed ones included, sorted."""
    return sorted({info.key.split("/")[1].replace("=", "/") for info in objects.scan("log")})


def hinted_names(objects: ReadableObjects) -> list[str]:
    """The branches that have a hint, sorted; one without commits has lost them."""
    return sorted(info.key.split("/")[1].replace("=", "/") for info in objects.scan("hint"))


def tag_names(objects: ReadableObjects) -> list[str]:
    """The tags, sorted."""
    return sorted({info.key.split("/")[1].replace("=", "/") for info in objects.scan("tags")})
