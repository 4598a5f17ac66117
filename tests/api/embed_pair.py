# SPDX-License-Identifier: Apache-2.0
"""Two programs of docs/embed: a task, and a driver with the task's address.

  embed_pair.py TASK DRIVER
"""
import subprocess
import sys

task, driver = sys.argv[1:]
with subprocess.Popen([task, "127.0.0.1:0"], stdout=subprocess.PIPE,
                      text=True) as served:
    try:
        first = served.stdout.readline().split()
        ran = subprocess.run([driver, *first[1:]], capture_output=True,
                             text=True, timeout=60)
        rest = served.communicate(timeout=60)[0]
    finally:
        served.kill()
print(first, ran, rest, served.returncode)
want = ["joined the driver", "begun ", "over "]
sys.exit(first[0] != "listening" or ran.stdout != "0.5 0.5\n1 1.5\n"
         or ran.returncode != 0 or served.returncode != 0
         or [line for line in rest.splitlines() if line in want] != want)
