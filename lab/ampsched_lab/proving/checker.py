"""Runs in the guest: ``checker.py FILE``. What ``ampsched advise --check`` measures, of the programs that a file names.

It writes a line of JSON for each: its name and what was measured.
"""

import json
import sys
from pathlib import Path

from ampsched.proving.measuring import measure
from ampsched.recording.cores import Cores
from ampsched.recording.setting import Setting
from ampsched.vm.results import RESULT

for row in json.loads(Path(sys.argv[1]).read_text("utf-8")):
    advised = Setting(
        threads=row["threads"], cores=Cores(row["cores"], tuple(row["cpus"])) if row["cpus"] else None
    )
    found = measure(row["command"], Setting(threads=row["usual"]), advised, time_s=row["time_s"])
    print(f"{RESULT}{json.dumps({'name': row['name'], 'measured': found.to_dict()})}", flush=True)
