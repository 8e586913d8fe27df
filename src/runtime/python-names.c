/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "python-names-priv.h"

#include "uprof/fnv.h"

#include <string.h>

enum {
    CODES_MAX = 32 * 1024, /* remembered */
    NAME_CHARS_MAX = 512,  /* characters of a name */
    PATH_CHARS_MAX = 1024, /* characters of a file's path */
    TABLE_BYTES_MAX = 16 * 1024,
    INSTRUCTION_BYTES = 2,
    BYTES_MAX = 32 * 1024 * 1024, /* of all tables of lines */
    LAST_LINE = 10 * 1000 * 1000,
};

/* A code object, by its process and address */
typedef struct {
    uint32_t process;
    uint64_t address;
} Key;

typedef struct {
    Key key;
    uint64_t digest;       /* of the members that lead to the texts below, and of the first line */
    char *function;        /* owned; UTF-8 */
    char *file;            /* owned; without most folders; UTF-8 */
    const UprofName *path; /* (nullable): of the file */
    const UprofName *name;
    unsigned first_line;
    GByteArray *table; /* (nullable): owned; the table of lines */
} Code;

struct _UprofPythonNames {
    UprofSpace *space; /* borrowed */
    UprofNames *names; /* borrowed */
    GHashTable *codes; /* of Code, by its key; owned */
    size_t n_bytes;    /* of tables of lines that were read since @codes was empty */
};

static guint
hash_key(gconstpointer data)
{
    const Key *key = data;

    return (guint)((key->address >> 4 ^ (uint64_t)key->process << 20) *
                       UINT64_C(0x9e3779b97f4a7c15) >>
                   32);
}

static gboolean
equal_keys(gconstpointer a, gconstpointer b)
{
    const Key *one = a, *other = b;

    return one->address == other->address && one->process == other->process;
}

static void
free_code(gpointer data)
{
    Code *code = data;

    g_free(code->function);
    g_free(code->file);
    g_clear_pointer(&code->table, g_byte_array_unref);
    g_free(code);
}

UprofPythonNames *
uprof_python_names_new(UprofSpace *space, UprofNames *names)
{
    UprofPythonNames *python = g_new0(UprofPythonNames, 1);

    python->space = space;
    python->names = names;
    python->codes = g_hash_table_new_full(hash_key, equal_keys, NULL, free_code);
    return python;
}

void
uprof_python_names_free(UprofPythonNames *python)
{
    g_hash_table_unref(python->codes);
    g_free(python);
}

/* ---- Objects ---- */

/* @kind: bytes of a character. Returns: the character at @i */
static gunichar
get_char(const uint8_t *bytes, unsigned kind, size_t i)
{
    switch (kind) {
    case 1:
        return bytes[i];
    case 2:
        return uprof_read_le16(bytes + 2 * i);
    default:
        return uprof_read_le32(bytes + 4 * i);
    }
}

static char *
convert_text(const uint8_t *bytes, unsigned kind, size_t n)
{
    GString *text = g_string_sized_new(n);

    for (size_t i = 0; i < n; i++) {
        const gunichar c = get_char(bytes, kind, i);
        g_string_append_unichar(text, g_unichar_validate(c) ? c : 0xfffd);
    }
    return g_string_free(text, FALSE);
}

/* Returns: (transfer full) (nullable): the str at @gva in UTF-8, if it has up to @n_max characters
 */
static char *
read_text(const UprofPythonNames *python, const UprofPythonLayout *layout, uint64_t gva,
          size_t n_max)
{
    const uint32_t head_bytes = MAX(layout->text_length + (uint32_t)sizeof(uint64_t),
                                    layout->text_state + (uint32_t)sizeof(uint32_t));
    uint8_t head[512], bytes[4 * PATH_CHARS_MAX];

    if (head_bytes > sizeof(head) || !uprof_space_read(python->space, gva, head, head_bytes))
        return NULL;
    const uint64_t n = uprof_read_le64(head + layout->text_length);
    const uint32_t state = uprof_read_le32(head + layout->text_state) >> layout->kind_bit;
    const unsigned kind = state & 7;
    const bool is_compact = state >> 3 & 1, is_ascii = state >> 4 & 1;
    if (n == 0 || n > n_max || !is_compact || (kind != 1 && kind != 2 && kind != 4) ||
        !uprof_space_read(python->space,
                          gva + (is_ascii ? layout->text_ascii : layout->text_compact), bytes,
                          n * kind))
        return NULL;
    return convert_text(bytes, kind, n);
}

/* Returns: (transfer full) (nullable): the table of lines */
static GByteArray *
read_table(const UprofPythonNames *python, const UprofPythonLayout *layout, uint64_t gva)
{
    uint8_t length[sizeof(uint64_t)], table[TABLE_BYTES_MAX];

    if (!uprof_space_read(python->space, gva + layout->bytes_length, length, sizeof(length)))
        return NULL;
    const uint64_t n = uprof_read_le64(length);
    if (n == 0 || n > sizeof(table) ||
        !uprof_space_read(python->space, gva + layout->bytes_data, table, n))
        return NULL;
    return g_byte_array_append(g_byte_array_new(), table, (guint)n);
}

/* ---- Lines ---- */

enum { SAME_LAST_LINE = 9, NEXT_LINES_MAX = 12, ONLY_LINE = 13, LONG = 14 };

static bool
read_varint(UprofSlice table, size_t *at, uint64_t *value)
{
    const uint8_t *bytes = table.data;

    *value = 0;
    for (unsigned shift = 0; shift < 36 && *at < table.len; shift += 6) {
        const uint8_t byte = bytes[(*at)++];
        *value |= (uint64_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40))
            return true;
    }
    return false;
}

/* An entry has a kind and a length in its first byte, which alone has its highest bit set. */
static bool
read_entry(UprofSlice table, size_t *at, int64_t *line, bool *has_line, unsigned *n_units)
{
    const uint8_t *bytes = table.data;
    const uint8_t head = bytes[(*at)++];
    const unsigned kind = head >> 3 & 0xf;
    uint64_t change;

    *n_units = (head & 7) + 1u;
    *has_line = kind <= LONG;
    if (kind > SAME_LAST_LINE && kind <= NEXT_LINES_MAX)
        *line += kind - (SAME_LAST_LINE + 1);
    if (kind == ONLY_LINE || kind == LONG) {
        if (!read_varint(table, at, &change))
            return false;
        *line += change & 1 ? -(int64_t)(change >> 1) : (int64_t)(change >> 1);
    }
    while (*at < table.len && !(bytes[*at] & 0x80))
        ++*at;
    return true;
}

unsigned
uprof_python_line_find(UprofSlice table, unsigned first, uint64_t offset)
{
    int64_t line = first;
    uint64_t end = 0;
    bool has_line;
    unsigned n_units;

    for (size_t at = 0; at < table.len;) {
        if (!read_entry(table, &at, &line, &has_line, &n_units))
            return 0;
        end += (uint64_t)n_units * INSTRUCTION_BYTES;
        if (offset < end)
            return has_line && line > 0 && line <= LAST_LINE ? (unsigned)line : 0;
    }
    return 0;
}

/* ---- Names ---- */

static const UprofName *
intern_text(const UprofPythonNames *python, const char *text)
{
    return uprof_names_intern(python->names, (UprofSlice){ text, strlen(text) });
}

/* Many files have these names, so their folder is a part of the name. */
static char *
shorten_path(const char *path)
{
    g_autofree char *name = g_path_get_basename(path);

    if (strcmp(name, "__init__.py") != 0 && strcmp(name, "__main__.py") != 0)
        return g_steal_pointer(&name);
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *folder_name = g_path_get_basename(folder);
    return g_build_filename(folder_name, name, NULL);
}

static UprofNameSource
get_source(const Code *code)
{
    return (UprofNameSource){ code->path, code->first_line };
}

static bool
read_code(const UprofPythonNames *python, const UprofPythonLayout *layout, const uint8_t *bytes,
          Code *code)
{
    g_autofree char *path =
        read_text(python, layout, uprof_read_le64(bytes + layout->code_file), PATH_CHARS_MAX);

    code->function =
        read_text(python, layout, uprof_read_le64(bytes + layout->code_name), NAME_CHARS_MAX);
    if (!code->function)
        return false;
    code->file = path ? shorten_path(path) : NULL;
    code->first_line = uprof_read_le32(bytes + layout->code_first_line);
    code->table = read_table(python, layout, uprof_read_le64(bytes + layout->code_lines));
    g_autofree char *name =
        code->file ? g_strdup_printf("%s (%s)", code->function, code->file) : NULL;
    code->name = intern_text(python, name ? name : code->function);
    code->path = path ? intern_text(python, path) : NULL;
    uprof_name_add_source(code->name, get_source(code));
    return true;
}

/* Returns: (nullable): the code object, remembered or read again */
static Code *
find_code(UprofPythonNames *python, const UprofPythonLayout *layout, const Key *key)
{
    uint8_t bytes[UPROF_PYTHON_CODE_BYTES_MAX];

    if (layout->code_bytes > sizeof(bytes) ||
        !uprof_space_read(python->space, key->address, bytes, layout->code_bytes))
        return NULL;
    const uint64_t parts[] = {
        uprof_read_le64(bytes + layout->code_file),
        uprof_read_le64(bytes + layout->code_name),
        uprof_read_le64(bytes + layout->code_lines),
        uprof_read_le32(bytes + layout->code_first_line),
    };
    const uint64_t digest =
        uprof_fnv64_add(UPROF_FNV64_START, (const uint8_t *)parts, sizeof(parts));
    Code *code = g_hash_table_lookup(python->codes, key);
    if (code && code->digest == digest)
        return code;
    code = g_new0(Code, 1);
    code->key = *key;
    code->digest = digest;
    for (unsigned i = 0; i < 3; i++)
        uprof_space_forget(python->space, parts[i]);
    if (!read_code(python, layout, bytes, code)) {
        free_code(code);
        return NULL;
    }
    if (g_hash_table_size(python->codes) >= CODES_MAX || python->n_bytes >= BYTES_MAX) {
        g_hash_table_remove_all(python->codes);
        python->n_bytes = 0;
    }
    python->n_bytes += code->table ? code->table->len : 0;
    g_hash_table_replace(python->codes, &code->key, code);
    return code;
}

const UprofName *
uprof_python_names_find(UprofPythonNames *python, const UprofPythonLayout *layout, uint32_t process,
                        uint64_t code_at, uint64_t instruction, bool with_line)
{
    const Key key = { process, code_at };
    const Code *code = find_code(python, layout, &key);
    const uint64_t start = code_at + layout->code_start;

    if (!code)
        return NULL;
    if (!with_line || !code->table || !code->file)
        return code->name;
    /* A function that has not begun is right before its first instruction. A thread can have a copy
     * of the instructions elsewhere (3.14 without the GIL). */
    const unsigned line =
        start - instruction <= INSTRUCTION_BYTES && instruction < start
            ? code->first_line
            : uprof_python_line_find((UprofSlice){ code->table->data, code->table->len },
                                     code->first_line, instruction - start);
    if (line == 0)
        return code->name;
    g_autofree char *name = g_strdup_printf("%s (%s:%u)", code->function, code->file, line);
    const UprofName *with_name = intern_text(python, name);
    uprof_name_add_source(with_name, get_source(code));
    return with_name;
}
