/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * btf.h - where members are in a Linux kernel's structures, as the kernel itself says
 *
 * A list of types and a list of names, from __start_BTF to __stop_BTF in its image (Linux,
 * include/uapi/linux/btf.h and Documentation/bpf/btf.rst). Offsets differ from one
 * kernel to the next, so that this is the only place to ask. The bytes are the guest's,
 * and may be made to hurt: what is said of a structure may be wrong, but it lies in it.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_BTF_BYTES_MAX = 64 * 1024 * 1024,
    UPROF_BTF_TYPES_MAX = 1000 * 1000,
    UPROF_BTF_DEPTH_MAX = 8,          /* structures without a name, in each other */
    UPROF_BTF_ALIASES_MAX = 32,       /* typedef of typedef of const ... */
    UPROF_BTF_STEPS_MAX = 100 * 1000, /* members looked at for one answer */
};

typedef struct _UprofBtf UprofBtf;

/**
 * uprof_btf_parse:
 * @bytes: borrowed, outlive what is returned
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if this is no list
 *   of types, or has a type of a kind that is not known
 */
UprofBtf *uprof_btf_parse(UprofSlice bytes, GError **error);
void uprof_btf_free(UprofBtf *btf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofBtf, uprof_btf_free)

/** uprof_btf_n: Returns: types */
unsigned uprof_btf_n(const UprofBtf *btf);

/**
 * uprof_btf_size:
 * @type: name of a structure or a union, else of a typedef of one
 * @size: (out): bytes
 *
 * Of several types of one name the first counts, here and in all that follows.
 *
 * Returns: false, @size untouched, if there is none
 */
bool uprof_btf_size(const UprofBtf *btf, const char *type, uint64_t *size);

/**
 * uprof_btf_member:
 * @type: as for uprof_btf_size()
 * @member: its name, or a path of names, "f_path.dentry"
 * @offset: (out): bytes before it
 *
 * Looks into members that have no name themselves.
 *
 * Returns: false, @offset untouched, if there is none, it does not begin with a byte, or
 *   it is a bit field
 */
bool uprof_btf_member(const UprofBtf *btf, const char *type, const char *member, uint64_t *offset);

/**
 * uprof_btf_array:
 * @type, @member: as for uprof_btf_member()
 * @n: (out): elements, of the outermost dimension
 *
 * Returns: false, @n untouched, if there is no such member or it is no array
 */
bool uprof_btf_array(const UprofBtf *btf, const char *type, const char *member, uint64_t *n);

/**
 * uprof_btf_enum:
 * @name: of a constant in any enum
 * @value: (out): a negative one in two's complement
 *
 * Looks at all of them. Returns: false, @value untouched, if there is none
 */
bool uprof_btf_enum(const UprofBtf *btf, const char *name, uint64_t *value);
