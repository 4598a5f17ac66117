/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_TENSOR_H_
#define WEIR_WEIR_TENSOR_H_

#include "runtime/weir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tensors: dtype, shape, row-major data, counted.
 *
 * The data is in the host's memory, or, of a tensor that came by DLPack or from
 * a fetch with |on_device|, in a GPU's. A tensor on a GPU can be fed, fetched
 * into, described, given out by DLPack and copied by weir_tensor_to_host; what
 * reads or writes elements on the host refuses it: W0004, which names the GPU.
 */

/* Uninitialised; |rank| <= 8. Errors: W0004, W2001-W2003, W6001. */
WEIR_API weir_status weir_tensor_create(weir_runtime *runtime, weir_dtype dtype,
                                        int32_t rank, const int64_t *dims,
                                        weir_tensor **out_tensor,
                                        weir_error *err);
/* The type of a tensor that is made of bytes. */
typedef struct weir_tensor_spec {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  const int64_t *dims; /* |rank| of them; may be NULL when |rank| is 0 */
  size_t bytes;        /* exactly as many as the shape takes (W0004) */
} weir_tensor_spec;

#define WEIR_TENSOR_SPEC(dtype, rank, dims, bytes) \
  { sizeof(weir_tensor_spec), (dtype), (rank), (dims), (bytes) }

/* A copy of |data|. Errors: as weir_tensor_create. */
WEIR_API weir_status weir_tensor_from_data(weir_runtime *runtime,
                                           const weir_tensor_spec *spec,
                                           const void *data,
                                           weir_tensor **out_tensor,
                                           weir_error *err);
/* Your memory as a tensor, no copy. |release| (may be NULL) is called once with
 * |self| when the last reference goes; after a failure it is not called.
 * |data| must be aligned to its element. */
WEIR_API weir_status
weir_tensor_from_memory(weir_runtime *runtime, const weir_tensor_spec *spec,
                        void *data, void (*release)(void *self, void *data),
                        void *self, weir_tensor **out_tensor, weir_error *err);
/* One more reference to |tensor|, which is returned; release drops one. */
WEIR_API weir_tensor *weir_tensor_retain(weir_tensor *tensor);
WEIR_API void weir_tensor_release(weir_tensor *tensor);

/* Whose memory holds a tensor's data. */
typedef enum weir_memory_kind {
  WEIR_MEMORY_HOST = 0,
  WEIR_MEMORY_GPU = 1
} weir_memory_kind;

typedef struct weir_tensor_info {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  bool read_only;
  int64_t dims[WEIR_RANK_LIMIT];
  int64_t elements;
  size_t bytes;
  weir_memory_kind memory;
  int32_t gpu; /* which, as CUDA numbers those of this process; else 0 */
} weir_tensor_info;

/* Fills |out_info|, whose struct_size is set. */
WEIR_API weir_status weir_tensor_desc(const weir_tensor *tensor,
                                      weir_tensor_info *out_info);
/* The data, lent, for reading; NULL where it is on a GPU, and never else. */
WEIR_API const void *weir_tensor_data(const weir_tensor *tensor);
/* The data for writing; NULL when the tensor is read-only or on a GPU. */
WEIR_API void *weir_tensor_mutable_data(weir_tensor *tensor);
/* |tensor| with its data in the host's memory: a copy of one that is on a GPU,
 * whole when the call returns; else one more reference to |tensor| itself.
 * Blocks. Errors: W0004, W6004 (|runtime| has not that GPU), W6001, W6002. */
WEIR_API weir_status weir_tensor_to_host(weir_runtime *runtime,
                                         weir_tensor *tensor,
                                         weir_tensor **out_tensor,
                                         weir_error *err);

/* Reads a tensor from a .npy, .npz, safetensors or IDX (also .gz) file; the
 * format follows from the first bytes. |root| (may be NULL): the file must lie
 * beneath this folder, without links out. |member| names one of several
 * tensors, NULL takes the only one. Errors: W4001-W4008, W4010, W4015, W6001.
 */
WEIR_API weir_status weir_tensor_read_file(weir_runtime *runtime,
                                           const char *root, const char *path,
                                           const char *member,
                                           weir_tensor **out_tensor,
                                           weir_error *err);
/* The same from |size| bytes, called |name| in messages. */
WEIR_API weir_status weir_tensor_read_buffer(
    weir_runtime *runtime, const void *data, size_t size, const char *name,
    const char *member, weir_tensor **out_tensor, weir_error *err);

/* Tensors under their names. */
typedef struct weir_tensor_list {
  uint32_t struct_size;
  size_t count;
  const char *const *names;
  const weir_tensor *const *tensors;
} weir_tensor_list;

#define WEIR_TENSOR_LIST(count, names, tensors) \
  { sizeof(weir_tensor_list), (count), (names), (tensors) }

/* Writes |list| to a .npy (one tensor), .npz or .safetensors file, as the
 * ending says; whole or not at all: a file beside |path| is renamed to it once
 * it is on disk. Errors: W0004, W4008, W5009, W6001, W6005. */
WEIR_API weir_status weir_tensor_write_file(weir_runtime *runtime,
                                            const char *path,
                                            const weir_tensor_list *list,
                                            weir_error *err);

/* Formats that can be written. */
typedef enum weir_file_format {
  WEIR_FILE_NPY = 1, /* one tensor */
  WEIR_FILE_NPZ = 2,
  WEIR_FILE_SAFETENSORS = 3
} weir_file_format;

/* The same to a function. */
WEIR_API weir_status weir_tensor_write_stream(weir_runtime *runtime,
                                              weir_file_format format,
                                              const weir_tensor_list *list,
                                              weir_write_fn write,
                                              void *write_self,
                                              weir_error *err);

/* DLPack, version 1 (dlpack.h). On success *from* takes |managed| and calls its
 * deleter later, on the thread that drops the last reference.
 *
 * On the host (kDLCPU, kDLCUDAHost, and kDLCUDAManaged, whose pages the host
 * reads too): row-major data is not copied, strided data is. On a GPU (kDLCUDA;
 * |device_id| as CUDA numbers those of this process): never copied, so it must
 * be row-major without gaps and aligned to its element.
 *
 * There is no stream in this call: work that writes the data has ended before
 * it, as after cudaStreamSynchronize by the producer, and nobody writes it
 * while a run that it is fed to is under way. A run reads it in place, or
 * copies it, and is done with it when it returns.
 * Errors: W0004, W2005 (dtype), W2001-W2003, W6001, W6004 (no such GPU). */
struct DLManagedTensorVersioned;
WEIR_API weir_status weir_tensor_from_dlpack(
    weir_runtime *runtime, struct DLManagedTensorVersioned *managed,
    weir_tensor **out_tensor, weir_error *err);
/* Gives the tensor out, without a copy; its deleter drops the reference. A
 * tensor on a GPU goes out as kDLCUDA with the GPU's number; what a run wrote
 * there is whole, so the consumer has no stream to wait for. Its deleter may be
 * called after the runtime's release. */
WEIR_API weir_status weir_tensor_to_dlpack(
    weir_tensor *tensor, struct DLManagedTensorVersioned **out_managed,
    weir_error *err);

#ifdef __cplusplus
}
#endif

#endif
