"""Which commands there are, by groups of the help: where each is defined, and its summary.

It imports nothing, so that the first page of help takes no longer than an interpreter does.
"""

ABOUT = "Which scheduling policy is best for these programs on this processor with unequal cores?"
EXAMPLE = "ampsched compare --machine 2B2S --workload sync-2 --policy linux,wash,colab"
OPTIONS = {
    "--version": "Print version and build, and exit",
    "--install-completion": "Have this shell complete commands, options and names",
    "--show-completion": "Print the script that does so",
    "-h, --help": "Print this page, or that of a command, and exit",
}
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Answers": {
        "advise": ("advising:advise", "Which policy and which cores are best for your program"),
        "compare": ("comparing:compare", "Compare policies on workloads and machines"),
        "sweep": ("sweeping:sweep", "Simulate many combinations of machines, workloads, policies"),
        "simulate": ("simulating:simulate", "Simulate one workload under one policy"),
        "explain": ("explaining:explain", "Explain what happened to one thread around a moment, and why"),
        "limit": ("limiting:limit", "Print what no policy can beat, and how far policies are from it"),
        "report": ("reporting:report", "Turn saved results into one HTML page"),
    },
    "Names": {
        "list": ("listing:list_names", "List machines, workloads, policies and other names"),
        "describe": ("listing:describe", "Describe what a name stands for, or check a file"),
    },
    "Programs and traces": {
        "record": ("recording:record", "Run a program and record what its threads do"),
        "import": ("importing:import_trace", "Read another tool's trace as a recording"),
        "check": ("checking:check", "Measure what a real scheduler did in a trace, and check limits"),
        "lift": ("lifting:lift", "Turn a recording into a program with parameters"),
        "import-rtapp": ("importing:import_rtapp", "Check whether an rt-app workload can be simulated"),
        "counters": ("counting:app", "Read performance counters of gem5, perf and others"),
    },
    "Machines": {
        "machine": ("machines:machine", "Write a machine file for this computer or another"),
        "calibrate": ("calibrating:calibrate", "Measure this computer's cores and counters"),
        "selftest": ("proving:selftest", "Say how exact the simulator is on this computer"),
    },
    "Run it for real": {
        "live": ("living:app", "Run programs under a policy on this computer, and compare"),
        "vm": ("virtual_recording:app", "Run commands in a virtual machine with unequal cores"),
    },
    "Policies and research": {
        "new": ("creating:app", "Write a policy to start from"),
        "train": ("training:train", "Train models that predict speed-ups from performance counters"),
        "tasks": ("tasks:app", "Schedule, draw, describe and convert task graphs"),
        "analytic": ("analysing:analytic", "Compare policies by the analytical model of Prop-SP"),
        "reproduce": ("reproducing:reproduce", "Repeat a paper's experiment and check its claims"),
    },
}
COMMANDS = {name: found for group in GROUPS.values() for name, found in group.items()}
