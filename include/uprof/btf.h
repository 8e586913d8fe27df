/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * btf.h - finds members of a Linux kernel's structures in the kernel's own type information
 *
 * The kernel's image has a list of types and a list of names, from __start_BTF to __stop_BTF
 * (Linux, include/uapi/linux/btf.h and Documentation/bpf/btf.rst). Offsets differ from kernel
 * to kernel, and the image has no other source of offsets. A hostile guest may write any
 * bytes. Such bytes can give wrong offsets, but never an offset outside the structure.
 */
#pragma once

#include "uprof/bytes.h"

typedef struct _UprofBtf UprofBtf;

/**
 * uprof_btf_parse:
 * @bytes: borrowed; must outlive the returned table
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if the bytes are not
 *   BTF, or have a type of an unknown kind
 */
UprofBtf *uprof_btf_parse(UprofSlice bytes, GError **error);
void uprof_btf_free(UprofBtf *btf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofBtf, uprof_btf_free)

/**
 * uprof_btf_size:
 * @type: name of a structure, of a union, or of a typedef of one of them
 * @size: (out): bytes; unchanged on failure
 *
 * If several types have this name, the first counts, here and in the other functions.
 *
 * Returns: false if there is no such type
 */
bool uprof_btf_size(const UprofBtf *btf, const char *type, uint64_t *size);

/**
 * uprof_btf_member:
 * @type: as for uprof_btf_size()
 * @member: name, or a path of names like "f_path.dentry"
 * @offset: (out): bytes from the start of the structure; unchanged on failure
 *
 * Searches unnamed members too.
 *
 * Returns: false if there is no such member, or the member is a bit field or does not begin
 *   at a byte
 */
bool uprof_btf_member(const UprofBtf *btf, const char *type, const char *member, uint64_t *offset);

/**
 * uprof_btf_bits:
 * @type, @member: as for uprof_btf_member(); the last name is one of a bit field
 * @offset: (out): bits from the start of the structure; unchanged on failure
 * @n: (out): bits of the field; unchanged on failure
 *
 * Returns: false if there is no such member, or the member is not a bit field
 */
bool uprof_btf_bits(const UprofBtf *btf, const char *type, const char *member, uint64_t *offset,
                    uint64_t *n);

/**
 * uprof_btf_array:
 * @type, @member: as for uprof_btf_member()
 * @n: (out): elements of the outermost dimension; unchanged on failure
 *
 * Returns: false if there is no such member, or the member is not an array
 */
bool uprof_btf_array(const UprofBtf *btf, const char *type, const char *member, uint64_t *n);

/**
 * uprof_btf_enum:
 * @type: name of an enumeration
 * @name: of one of its values
 * @value: (out): unchanged on failure
 *
 * Returns: false if there is no such enumeration, or it has no such value
 */
bool uprof_btf_enum(const UprofBtf *btf, const char *type, const char *name, uint32_t *value);
