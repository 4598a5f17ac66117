/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/inside.h"
#include "tests/cuda/standin/standin_internal.h"

/* Faults, counts, and the functions of CUDA that only tell something. */

enum {
  kVersion = 13000,
  kDevices = 2,
  kMostDevices = 16,
  kPatienceNs = 2000000
};

standin_state standin = {.driver = kVersion,
                         .runtime = kVersion,
                         .devices = kDevices,
                         .memory_bytes = (size_t)1 << 30};
_Thread_local int standin_device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A number of the environment; |otherwise| where there is none. */
static uint64_t asked(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

/* What tests of the command ask for, who cannot call the control. */
__attribute__((constructor)) static void read_environment(void) {
  standin.lose_at = asked("STANDIN_LOSE_AT", 0);
  standin.lose_code = cudaErrorIllegalAddress;
  standin.memory_bytes = asked("STANDIN_MEMORY", standin.memory_bytes);
  standin.others_bytes = asked("STANDIN_OTHERS", 0);
  standin.others_tries = asked("STANDIN_OTHERS_TRIES", 0);
  standin.seed = asked("STANDIN_SEED", 0);
  standin_inside_open();
}

/* Whether the call that is counted down to is this one. */
static bool is_now(uint64_t *k) {
  return *k != 0 && --*k == 0;
}

cudaError_t standin_begin(void) {
  pthread_mutex_lock(&lock);
  standin.counts.calls++;
  if (is_now(&standin.lose_at)) standin.lost = standin.lose_code;
  bool fails = is_now(&standin.fail_at);
  if (standin.lost != cudaSuccess) return standin.lost;
  return fails ? standin.fail_code : cudaSuccess;
}

cudaError_t standin_begin_quietly(void) {
  pthread_mutex_lock(&lock);
  return standin.lost;
}

cudaError_t standin_end(cudaError_t e) {
  if (e == cudaSuccess) e = standin.lost;
  standin_inside_look();
  pthread_mutex_unlock(&lock);
  return e;
}

/* xorshift64*: Marsaglia, Journal of Statistical Software 8 (2003), number 14.
 */
bool standin_chance(void) {
  if (standin.seed == 0) return false;
  standin.seed ^= standin.seed >> 12;
  standin.seed ^= standin.seed << 25;
  standin.seed ^= standin.seed >> 27;
  return (standin.seed * UINT64_C(0x2545F4914F6CDD1D)) >> 63 != 0;
}

cudaError_t cudaDriverGetVersion(int *out) {
  cudaError_t e = standin_begin();
  *out = standin.driver;
  return standin_end(e);
}

cudaError_t cudaRuntimeGetVersion(int *out) {
  cudaError_t e = standin_begin();
  *out = standin.runtime;
  return standin_end(e);
}

cudaError_t cudaGetDeviceCount(int *out) {
  cudaError_t e = standin_begin();
  *out = 0;
  if (e == cudaSuccess && standin.driver < standin.runtime)
    e = cudaErrorInsufficientDriver;
  if (e == cudaSuccess && standin.devices == 0) e = cudaErrorNoDevice;
  if (e == cudaSuccess) *out = standin.devices;
  return standin_end(e);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && (device < 0 || device >= standin.devices))
    e = cudaErrorInvalidDevice;
  if (e == cudaSuccess) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "stand-in %d", device);
    out->uuid.bytes[0] = 'W';
    out->uuid.bytes[15] = (char)(device + 1);
    out->major = 9;
    out->totalGlobalMem = standin.memory_bytes;
  }
  return standin_end(e);
}

cudaError_t cudaSetDevice(int device) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && (device < 0 || device >= standin.devices))
    e = cudaErrorInvalidDevice;
  if (e == cudaSuccess && !standin_has(STANDIN_BUG_wrong_gpu))
    standin_device = device;
  return standin_end(e);
}

static bool are_two(int a, int b) {
  return a >= 0 && a < standin.devices && b >= 0 && b < standin.devices &&
         a != b;
}

cudaError_t cudaDeviceCanAccessPeer(int *out, int device, int peer) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && !are_two(device, peer)) e = cudaErrorInvalidDevice;
  if (e == cudaSuccess) *out = !standin.no_ways;
  return standin_end(e);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && !are_two(standin_device, peer))
    e = cudaErrorInvalidDevice;
  if (e == cudaSuccess && flags != 0) e = cudaErrorInvalidValue;
  if (e == cudaSuccess && standin.no_ways) e = cudaErrorPeerAccessUnsupported;
  if (e == cudaSuccess && (standin.ways[standin_device] >> peer & 1) != 0)
    e = cudaErrorPeerAccessAlreadyEnabled;
  if (e == cudaSuccess) standin.ways[standin_device] |= (uint16_t)(1U << peer);
  return standin_end(e);
}

const char *cudaGetErrorString(cudaError_t e) {
  switch ((int)e) {
    case cudaErrorInvalidValue:
      return "invalid argument (stand-in)";
    case cudaErrorMemoryAllocation:
      return "out of memory (stand-in)";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered (stand-in)";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure (stand-in)";
    case cudaErrorSymbolNotFound:
      return "named symbol not found (stand-in)";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing (stand-in)";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture "
             "(stand-in)";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle (stand-in)";
    default:
      return "another error (stand-in)";
  }
}

static void reset(void) {
  pthread_mutex_lock(&lock);
  standin.counts.destroyed_with_work = standin.counts.written_after_free = 0;
  standin_sweep();
  standin_counts c = standin.counts;
  c.calls = c.mallocs = c.frees = c.launches = c.graph_launches = 0;
  c.host_bytes = c.within_bytes = c.peer_bytes = c.peer_copies = 0;
  c.far_copies = 0;
  size_t used[kMostDevices];
  uint16_t ways[kMostDevices];
  memcpy(used, standin.used_bytes, sizeof used);
  memcpy(ways, standin.ways, sizeof ways);
  standin = (standin_state){.driver = kVersion,
                            .runtime = kVersion,
                            .devices = kDevices,
                            .memory_bytes = (size_t)1 << 30,
                            .counts = c};
  memcpy(standin.used_bytes, used, sizeof used);
  memcpy(standin.ways, ways, sizeof ways);
  pthread_mutex_unlock(&lock);
}

static void fail_at(uint64_t k, int code) {
  standin.fail_at = k;
  standin.fail_code = (cudaError_t)code;
}

static void lose_at(uint64_t k, int code) {
  standin.lose_at = k;
  standin.lose_code = (cudaError_t)code;
}

static void set_versions(int driver, int runtime) {
  standin.driver = driver;
  standin.runtime = runtime;
}

static void set_devices(int count) {
  standin.devices = count < kMostDevices ? count : kMostDevices;
}

static void set_memory(size_t bytes) {
  standin.memory_bytes = bytes;
}

static void set_seed(uint64_t seed) {
  standin.seed = seed;
}

static standin_counts counts(void) {
  pthread_mutex_lock(&lock);
  standin_counts c = standin.counts;
  for (int i = 0; i < kMostDevices; i++) c.block_bytes += standin.used_bytes[i];
  pthread_mutex_unlock(&lock);
  return c;
}

static void set_check_launches(bool check) {
  standin.check_launches = check;
}

static void hide(const char *symbol) {
  standin.hidden = symbol;
}

static const char *fault(void) {
  return standin.fault != NULL ? standin.fault : "";
}

static void set_others(size_t bytes, uint64_t tries) {
  standin.others_bytes = bytes;
  standin.others_tries = tries;
}

static void set_ways(bool ways) {
  standin.no_ways = !ways;
  if (!ways) memset(standin.ways, 0, sizeof standin.ways);
}

static int device(void) {
  return standin_device;
}

extern const standin_control standin_functions;
const standin_control standin_functions = {
    reset,    fail_at,    lose_at, set_versions, set_devices,        set_memory,
    set_seed, counts,     device,  standin_put,  set_check_launches, hide,
    fault,    set_others, set_ways};
