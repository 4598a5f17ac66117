#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's parameter server, asked as asked.h has it.

  tf_peer.py WORK

One ps and one worker on loopback gRPC, one thread each as weir's tasks, this
process being the worker. WORK is scalar, pull:BYTES, push:BYTES or edges:COUNT:
the graphs of `run`, in TensorFlow's words. Prints "READY PID" with the ps.
"""
import os
import socket
import subprocess
import sys
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", GRPC_VERBOSITY="ERROR",
                  CUDA_VISIBLE_DEVICES="-1")
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def server(cluster, job):
    config = tf1.ConfigProto(intra_op_parallelism_threads=1,
                             inter_op_parallelism_threads=1)
    return tf.distribute.Server(cluster, job_name=job, task_index=0,
                                config=config)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def edges(count):
    with tf.device("/job:ps/task:0"):
        x = tf1.get_variable("x", initializer=tf1.constant(1.0))
        made = [x + (i + 0.5) for i in range(count)]
    with tf.device("/job:worker/task:0"):
        left = [a * 2.0 for a in made]
        while len(left) > 1:
            left = left[2:] + [left[0] + left[1]]
        return left[0] * 1.5


def work(what):
    """The op of one step."""
    name, _, size = what.partition(":")
    if name == "edges":
        return edges(int(size)).op
    n = int(size or 4) // 4
    with tf.device("/job:ps/task:0"):
        v = tf1.get_variable("v", shape=[n], initializer=tf1.zeros_initializer())
    with tf.device("/job:worker/task:0"):
        g = tf1.get_variable("g", shape=[n], initializer=tf1.zeros_initializer())
    if name == "push":
        with tf.device("/job:ps/task:0"):
            return tf1.assign_add(v, g.read_value()).op
    with tf.device("/job:worker/task:0"):
        return tf1.slice(v, [0], [1]).op


def serve(call):
    for _ in range(3):
        call()
    for line in sys.stdin:
        end, times = time.perf_counter_ns() + float(line) * 1e9, []
        while len(times) < 3 or time.perf_counter_ns() < end:
            start = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - start)
        times.sort()
        print(times[0], times[len(times) // 2], len(times), flush=True)


def main():
    if sys.argv[1] == "ps":
        cluster = {"ps": [sys.argv[2]], "worker": [sys.argv[3]]}
        kept = server(cluster, "ps")  # lives as long as this process
        sys.stdin.read()
        os._exit(0 if kept else 1)
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    ps = subprocess.Popen([sys.executable, __file__, "ps", *addresses],
                          stdin=subprocess.PIPE)
    cluster = {"ps": addresses[:1], "worker": addresses[1:]}
    worker = server(cluster, "worker")
    with tf1.Session(worker.target) as session:
        op = work(sys.argv[1])
        session.run(tf1.global_variables_initializer())
        call = session.make_callable(op)
        call()
        print("READY", ps.pid, flush=True)
        serve(call)
    ps.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
