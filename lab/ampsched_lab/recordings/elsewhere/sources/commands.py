"""Six commands, three at a time; what they write is read."""

import subprocess

commands = [["gzip", "-n", "-6", "-c", f"part{part}.txt"] for part in range(6)]
total = 0
for at in range(0, len(commands), 3):
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands[at : at + 3]]
    for child in children:
        total += len(child.communicate()[0])
print(total)
