"""Questions of campaigns, labelled by outcomes: `label` makes the labels, `exam` examines the router on them.

python -m bench.router.campaigns exam      on the recorded labels; a second
python -m bench.router.campaigns label     needs a served small model; an hour on one core
"""

from __future__ import annotations

import sys

from bench.parts import run_part

PARTS = {"exam": "the router on campaigns that nothing was trained on", "label": "labels, with a served small model"}

if __name__ == "__main__":
    raise SystemExit(run_part(str(__package__), __doc__, PARTS, sys.argv[1:]))
