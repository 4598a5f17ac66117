/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the name of CUDA's, and none of its functions. */
extern const int standin_bare;
const int standin_bare = 1;
