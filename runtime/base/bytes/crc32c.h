/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_BYTES_CRC32C_H_
#define WEIR_BASE_BYTES_CRC32C_H_

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), as iSCSI, TFRecord and
 * checkpoints have it. With the CPU's instruction where it has one, else eight
 * bytes at a time by tables; both give the same. Source: RFC 3720 B.4;
 * Kounavis and Berry, ISCC 2005 (slicing by eight). */

/* The CRC of the bytes with CRC |crc| (0: none) followed by |size| bytes:
 * weir_crc32c(weir_crc32c(0, a, n), b, m) is the CRC of a and b joined. */
uint32_t weir_crc32c(uint32_t crc, const void *data, size_t size);

/* The CRC of bytes of CRC |a| followed by |b_size| bytes of CRC |b|. */
uint32_t weir_crc32c_join(uint32_t a, uint32_t b, uint64_t b_size);

/* weir_crc32c by tables, on every CPU. For tests and comparisons. */
uint32_t weir_crc32c_table(uint32_t crc, const void *data, size_t size);

/* As TFRecord stores it, so that a CRC of bytes that hold CRCs is still good:
 * turned right by 15 bits, plus a constant. */
static inline uint32_t weir_crc32c_mask(uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
