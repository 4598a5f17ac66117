#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir doctor` where CUDA's library is the stand-in, and where it is no good.

  test_cuda_doctor.py WEIR BUILD_DIR
"""
import json
import os
import re
import subprocess
import sys
import unittest

WEIR, BUILD = os.path.abspath(sys.argv[1]), sys.argv[2]


def doctor(folder, *args):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, folder))
    return subprocess.run([WEIR, "doctor", *args], env=env, text=True,
                          capture_output=True, check=True).stdout


class Doctor(unittest.TestCase):
    def test_two_gpus(self):
        gpus = ("driver 13.0, runtime 13.0, 2 GPUs: stand-in 0 1073.7 MB, "
                "stand-in 1 1073.7 MB")
        self.assertEqual(json.loads(doctor("standin", "--json"))["cuda"], gpus)
        self.assertRegex(doctor("standin"),
                         re.compile(f"^cuda +{re.escape(gpus)}$", re.M))

    def test_no_good_library(self):
        self.assertRegex(
            doctor("bare"), re.compile("^cuda +libcudart.so.13 has no function "
                                       "cudaDriverGetVersion$", re.M))


unittest.main(argv=sys.argv[:1])
