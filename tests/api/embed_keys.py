# SPDX-License-Identifier: Apache-2.0
"""docs/embed/keys.c: a server and two workers, over a unix socket.

  embed_keys.py KEYS
"""
import subprocess
import sys
import tempfile

keys = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    address = f"unix:{folder}/ps"
    run = [subprocess.Popen([keys, job, index, address], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
           for job, index in (("ps", "0"), ("worker", "0"), ("worker", "1"))]
    try:
        workers = [p.communicate(timeout=60) for p in run[1:]]
        run[0].terminate()
        server = run[0].communicate(timeout=60)
    finally:
        for p in run:
            p.kill()
print(server, workers, [p.returncode for p in run])
sys.exit(any(out != "100 pushes, learnt\n" for out, _ in workers)
         or server[0] != f"listening at {address}\n"
         or any(p.returncode != 0 for p in run))
