"""What a script of ours says in a virtual machine that it has found."""

import json
from typing import Any

RESULT = "RESULT "


def results(output: str) -> list[Any]:
    """The values in JSON behind ``RESULT`` in lines of an output, in order."""
    return [json.loads(line.removeprefix(RESULT)) for line in output.splitlines() if line.startswith(RESULT)]
