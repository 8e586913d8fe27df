/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * section = { entry }
 * entry   = length (CIE | FDE)      length: u32, or ffffffff and u64; 0 in .eh_frame: empty entry
 * CIE     = id version augmentation NUL [address_bytes segment_bytes] code_align data_align
 *           return_register [augmentation_len augmentation_data] program
 * FDE     = cie start len [augmentation_len augmentation_data] program
 *
 * id is 0 in .eh_frame and all ones in .debug_frame. In .eh_frame cie is the distance from
 * itself back to the CIE, in .debug_frame the offset of the CIE. Both have 4 bytes, or 8 in
 * 64-bit .debug_frame.
 */
#include "cfi-entry-priv.h"

#include <string.h>

#include "uprof/error.h"

/* Encodings of addresses (LSB, section 10.5.1) */
enum {
    PE_ABSPTR = 0x00,
    PE_ULEB128 = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB128 = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_FORMAT = 0x0f,

    PE_PCREL = 0x10,
    PE_ALIGNED = 0x50,
    PE_APPLICATION = 0xf0, /* with the bit for "indirect" */
    PE_OMIT = 0xff,
};

static uint64_t
mask_address(const UprofCfiSection *section, uint64_t address)
{
    return section->arch->word_bytes == 4 ? address & UINT32_MAX : address;
}

bool
uprof_cfi_entry_unsigned(UprofBytes *bytes, unsigned width, uint64_t *value)
{
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    bool ok;

    switch (width) {
    case 1:
        if ((ok = uprof_bytes_u8(bytes, &u8)))
            *value = u8;
        return ok;
    case 2:
        if ((ok = uprof_bytes_u16(bytes, &u16)))
            *value = u16;
        return ok;
    case 4:
        if ((ok = uprof_bytes_u32(bytes, &u32)))
            *value = u32;
        return ok;
    default:
        return uprof_bytes_u64(bytes, value);
    }
}

/* clang-format off */
static const struct {
    uint8_t format;
    uint8_t width; /* bytes; 0: as many as an address has */
    bool is_signed;
} formats[] = {
    { PE_ABSPTR, 0, false },
    { PE_UDATA2, 2, false }, { PE_UDATA4, 4, false }, { PE_UDATA8, 8, false },
    { PE_SDATA2, 2, true },  { PE_SDATA4, 4, true },  { PE_SDATA8, 8, true },
};
/* clang-format on */

/* Reads a number that has the format of an address. */
static bool
read_encoded_number(const UprofCfiSection *section, UprofBytes *bytes, uint8_t encoding,
                    uint64_t *value)
{
    const uint8_t format = encoding & PE_FORMAT;
    int64_t number;

    if (format == PE_ULEB128)
        return uprof_bytes_uleb(bytes, value);
    if (format == PE_SLEB128) {
        if (!uprof_bytes_sleb(bytes, &number))
            return false;
        *value = (uint64_t)number;
        return true;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (formats[i].format != format)
            continue;
        const unsigned width = formats[i].width ? formats[i].width : section->arch->word_bytes;
        if (!uprof_cfi_entry_unsigned(bytes, width, value))
            return false;
        if (formats[i].is_signed && width < 8 && *value >> (8 * width - 1))
            *value |= UINT64_MAX << 8 * width;
        return true;
    }
    return false;
}

/* Absolute and relative addresses are supported, indirect addresses are not. */
static bool
is_supported_encoding(uint8_t encoding)
{
    const uint8_t application = encoding & PE_APPLICATION, format = encoding & PE_FORMAT;

    if (application != 0 && application != PE_PCREL)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++)
        if (formats[i].format == format)
            return true;
    return format == PE_ULEB128 || format == PE_SLEB128;
}

/* A linker writes a relative 0 for a function that is left out, so 0 stays 0. */
bool
uprof_cfi_entry_address(const UprofCfiSection *section, UprofBytes *bytes, uint8_t encoding,
                        uint64_t *address)
{
    const uint64_t here = section->start + bytes->at;

    if (!read_encoded_number(section, bytes, encoding, address))
        return false;
    if ((encoding & PE_APPLICATION) == PE_PCREL && *address != 0)
        *address += here;
    *address = mask_address(section, *address);
    return true;
}

UprofBytes
uprof_cfi_entry_first(const UprofCfiSection *section)
{
    return (UprofBytes){ .name = section->name,
                         .all = section->bytes,
                         .big_endian = section->arch->big_endian };
}

bool
uprof_cfi_entry_next(const UprofCfiSection *section, UprofBytes *bytes, UprofCfiEntry *entry,
                     GError **error)
{
    uint64_t len = 0, id = 0;
    uint32_t short_len;
    unsigned id_bytes = 4;
    UprofSlice body;

    entry->at = bytes->at;
    if (!uprof_bytes_u32(bytes, &short_len))
        return uprof_bytes_fail(bytes, error, "truncated entry");
    len = short_len;
    if (short_len == UINT32_MAX) {
        if (!uprof_bytes_u64(bytes, &len))
            return uprof_bytes_fail(bytes, error, "truncated entry");
        id_bytes = section->is_eh ? 4 : 8;
    } else if (short_len >= 0xfffffff0) {
        return uprof_bytes_fail(bytes, error, "bad length of an entry");
    }
    entry->rest = *bytes;
    if (!uprof_bytes_take(bytes, len, &body))
        return uprof_bytes_fail(bytes, error, "entry ends beyond its section");
    entry->rest.all.len = bytes->at;
    entry->is_cie = false;
    entry->cie_at = SIZE_MAX;
    entry->is_end = len == 0;
    if (entry->is_end)
        return true;

    const size_t id_at = entry->rest.at;
    if (!uprof_cfi_entry_unsigned(&entry->rest, id_bytes, &id))
        return uprof_bytes_fail(bytes, error, "truncated entry");
    if (section->is_eh) {
        entry->is_cie = id == 0;
        entry->cie_at = id <= id_at ? id_at - id : SIZE_MAX;
    } else {
        entry->is_cie = id == (id_bytes == 4 ? UINT32_MAX : UINT64_MAX);
        entry->cie_at = id;
    }
    return true;
}

/* Each letter stands for a field. Old sections have "eh", which the caller handles. */
static bool
read_augmentation(const UprofCfiSection *section, UprofBytes *rest, const char *letters,
                  UprofCfiCie *cie)
{
    uint64_t len, ignored;
    UprofSlice data;

    if (letters[0] == '\0')
        return true;
    if (letters[0] != 'z' || !uprof_bytes_uleb(rest, &len))
        return false;
    UprofBytes bytes = *rest;
    if (!uprof_bytes_take(rest, len, &data))
        return false;
    bytes.all.len = rest->at;
    cie->has_augmentation = true;
    for (const char *letter = letters + 1; *letter; letter++) {
        uint8_t encoding;

        switch (*letter) {
        case 'R':
            if (!uprof_bytes_u8(&bytes, &cie->encoding))
                return false;
            break;
        case 'P': /* the personality routine, which is skipped */
            if (!uprof_bytes_u8(&bytes, &encoding) || encoding == PE_ALIGNED ||
                (encoding != PE_OMIT && !read_encoded_number(section, &bytes, encoding, &ignored)))
                return false;
            break;
        case 'L':
            if (!uprof_bytes_u8(&bytes, &encoding))
                return false;
            break;
        case 'S':
            cie->is_signal = true;
            break;
        case 'B': /* aarch64: return addresses signed with key B; tagged frames */
        case 'G':
            break;
        default:
            return false;
        }
    }
    return true;
}

static bool
read_return_reg(const UprofCfiSection *section, UprofBytes *rest, uint8_t version, UprofCfiCie *cie)
{
    uint64_t dwarf;
    unsigned reg;

    if (!(version == 1 ? uprof_cfi_entry_unsigned(rest, 1, &dwarf)
                       : uprof_bytes_uleb(rest, &dwarf)) ||
        !uprof_arch_dwarf_reg(section->arch, dwarf, &reg))
        return false;
    cie->return_reg = (uint8_t)reg;
    return true;
}

bool
uprof_cfi_entry_cie(const UprofCfiSection *section, const UprofCfiEntry *entry, UprofCfiCie *cie)
{
    UprofBytes rest = entry->rest;
    uint8_t version, address_bytes, segment_bytes;
    uint64_t word;

    *cie = (UprofCfiCie){ .at = entry->at };
    if (!entry->is_cie || entry->is_end)
        return false;
    if (!uprof_bytes_u8(&rest, &version) || (version != 1 && version != 3 && version != 4))
        return false;
    const char *letters = (const char *)rest.all.data + rest.at;
    const char *end = memchr(letters, '\0', uprof_bytes_left(&rest));
    if (!end || !uprof_bytes_seek(&rest, rest.at + (size_t)(end - letters) + 1))
        return false;
    if (version == 4 &&
        (!uprof_bytes_u8(&rest, &address_bytes) || !uprof_bytes_u8(&rest, &segment_bytes) ||
         address_bytes != section->arch->word_bytes || segment_bytes != 0))
        return false;
    if (strcmp(letters, "eh") == 0) {
        if (!uprof_cfi_entry_unsigned(&rest, section->arch->word_bytes, &word))
            return false;
        letters = "";
    }
    if (!uprof_bytes_uleb(&rest, &cie->code_align) || !uprof_bytes_sleb(&rest, &cie->data_align) ||
        !read_return_reg(section, &rest, version, cie) ||
        !read_augmentation(section, &rest, letters, cie) || !is_supported_encoding(cie->encoding))
        return false;
    cie->program = rest;
    return true;
}

bool
uprof_cfi_entry_fde(const UprofCfiSection *section, const UprofCfiEntry *entry,
                    const UprofCfiCie *cie, UprofCfiFde *fde)
{
    UprofBytes rest = entry->rest;
    uint64_t skipped;
    UprofSlice augmentation;

    if (entry->is_cie || entry->is_end ||
        !uprof_cfi_entry_address(section, &rest, cie->encoding, &fde->start) ||
        !read_encoded_number(section, &rest, cie->encoding, &fde->len))
        return false;
    if (cie->has_augmentation &&
        (!uprof_bytes_uleb(&rest, &skipped) || !uprof_bytes_take(&rest, skipped, &augmentation)))
        return false;
    fde->program = rest;
    return true;
}
