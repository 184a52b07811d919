"""``govtool policy schema``: the JSON Schema of policy files, for editors."""

from __future__ import annotations

from govtool.cli.ui import Ui
from govtool.errors import EXIT_OK


def policy_schema(ui: Ui) -> int:
    """Print the JSON Schema of policy files.

      govtool policy schema > policy.schema.json
      govtool policy schema | jq .properties

    Editors check and complete policies with it: # yaml-language-server: $schema=policy.schema.json
    """
    from govtool.policy.model import json_schema
    from govtool.render.envelope import json_lines

    ui.show(json_lines(json_schema()))
    return EXIT_OK
