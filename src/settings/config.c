/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-priv.h"

#include "uprof/clock.h"
#include "uprof/config-xml.h"
#include "uprof/error.h"
#include "uprof/owner-check.h"
#include "uprof/read-all.h"
#include "uprof/scan.h"
#include "uprof/settings.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include "destination-priv.h"
#include "name-pattern-priv.h"
#include "settings-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DAYS_MAX = 36500,
    MEGABYTES_MAX = 1024 * 1024 * 1024,
};

#define CHANCE_FORM "0 to 1, such as 0.2"
#define PATH_FORM "absolute paths with ':' between them"
#define DAYS_FORM "1 to 36500 (days)"
#define MEGABYTES_FORM "0 to 1073741824 (megabytes)"
#define MEMORY_FORM "16 to 65536 (megabytes)"

/* Parses @text into @member, and frees the old value. Returns false for a bad value. */
typedef bool (*TakeValue)(const char *text, void *member);

static bool
take_rate(const char *text, void *member)
{
    return uprof_settings_parse_rate(text, member);
}

/* A round must end by itself, so 0 (until stopped) is refused. */
static bool
take_duration(const char *text, void *member)
{
    uint64_t ns;

    if (!uprof_settings_parse_duration(text, &ns) || ns == 0)
        return false;
    *(uint64_t *)member = ns;
    return true;
}

static bool
take_budget(const char *text, void *member)
{
    return uprof_settings_parse_budget(text, member);
}

static bool
take_chance(const char *text, void *member)
{
    return uprof_settings_parse_chance(text, member);
}

static bool
take_number(const char *text, uint64_t min, uint64_t max, void *member)
{
    return uprof_slice_to_uint((UprofSlice){ text, strlen(text) }, 10, min, max, member);
}

static bool
take_days(const char *text, void *member)
{
    return take_number(text, 1, DAYS_MAX, member);
}

static bool
take_megabytes(const char *text, void *member)
{
    return take_number(text, 0, MEGABYTES_MAX, member);
}

static bool
take_memory(const char *text, void *member)
{
    return take_number(text, UPROF_CONFIG_MEMORY_MIN, UPROF_CONFIG_MEMORY_MAX, member);
}

static void
replace_list(void *member, GPtrArray *list)
{
    GPtrArray **old = member;

    g_ptr_array_unref(*old);
    *old = list;
}

static bool
take_words(const char *text, void *member)
{
    replace_list(member, uprof_name_pattern_split(text));
    return true;
}

static bool
take_path(const char *text, void *member)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", -1);
    g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);

    for (char **part = parts; *part; part++) {
        if (**part == '\0')
            continue;
        if (!g_path_is_absolute(*part))
            return false;
        g_ptr_array_add(folders, g_strdup(*part));
    }
    replace_list(member, g_steal_pointer(&folders));
    return true;
}

static bool
take_folder(const char *text, void *member)
{
    char **folder = member;

    if (!g_path_is_absolute(text))
        return false;
    g_free(*folder);
    *folder = g_strdup(text);
    return true;
}

static bool
take_folder_or_none(const char *text, void *member)
{
    char **folder = member;

    if (text[0])
        return take_folder(text, member);
    g_free(*folder);
    *folder = g_strdup("");
    return true;
}

#define XML(member) G_STRUCT_OFFSET(UprofConfigXml, member)
#define AT(member) G_STRUCT_OFFSET(UprofConfig, member)

/* clang-format off */
static const struct {
    const char *name; /* in the file */
    const char *built_in;
    size_t text;
    TakeValue take;
    const char *form;
    size_t value;
} values[] = {
    { "profile/@rate",           "99",   XML(profile_rate),       take_rate,      UPROF_RATE_FORM,      AT(rate_mhz)           },
    { "profile/@duration",       "20s",  XML(profile_duration),   take_duration,  "1ms to 720h",        AT(duration_ns)        },
    { "profile/@budget",         "1",    XML(profile_budget),     take_budget,    UPROF_BUDGET_FORM,    AT(budget_ppm)         },
    { "collect/@connect",        "",     XML(connect),            take_words,     NULL,                 AT(uris)               },
    { "collect/@domains",        "",     XML(domains),            take_words,     NULL,                 AT(domains)            },
    { "collect/@chance",         "1",    XML(chance),             take_chance,    CHANCE_FORM,          AT(chance_ppm)         },
    { "collect/@longest",        "8m",   XML(longest),            take_duration,  "1ms to 720h",        AT(longest_ns)         },
    { "limits/@rate",            "200",  XML(limits_rate),        take_rate,      UPROF_RATE_FORM,      AT(limit_rate_mhz)     },
    { "limits/@duration",        "60s",  XML(limits_duration),    take_duration,  "1ms to 720h",        AT(limit_duration_ns)  },
    { "limits/@budget",          "2",    XML(limits_budget),      take_budget,    UPROF_BUDGET_FORM,    AT(limit_budget_ppm)   },
    { "symbols/@path",           "/var/lib/virt-uprof/symbols:/usr/lib/debug",
                                         XML(symbols_path),       take_path,      PATH_FORM,            AT(symbol_folders)     },
    { "symbols/@maxMegabytes",   "256",  XML(symbols_megabytes),  take_memory,    MEMORY_FORM,          AT(symbols_megabytes)  },
    { "store/@directory",        "/var/lib/virt-uprof",
                                         XML(directory),          take_folder,    "an absolute path",   AT(store)              },
    { "store/@sliceDays",        "7",    XML(slice_days),         take_days,      DAYS_FORM,            AT(slice_days)         },
    { "store/@mergedDays",       "90",   XML(merged_days),        take_days,      DAYS_FORM,            AT(merged_days)        },
    { "store/@maxMegabytes",     "512",  XML(max_megabytes),      take_megabytes, MEGABYTES_FORM,       AT(max_megabytes)      },
    { "store/@minFreeMegabytes", "500",  XML(min_free_megabytes), take_megabytes, MEGABYTES_FORM,       AT(min_free_megabytes) },
    { "metrics/@directory",      "",     XML(metrics_folder),     take_folder_or_none, "an absolute path", AT(metrics_folder)    },
};
/* clang-format on */

UprofConfig *
uprof_config_new(void)
{
    UprofConfig *config = g_new0(UprofConfig, 1);

    config->uris = g_ptr_array_new();
    config->domains = g_ptr_array_new();
    config->symbol_folders = g_ptr_array_new();
    config->destinations = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_destination_free);
    for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
        const bool ok =
            values[i].take(values[i].built_in, G_STRUCT_MEMBER_P(config, values[i].value));
        g_assert(ok);
    }
    return config;
}

void
uprof_config_free(UprofConfig *config)
{
    if (!config)
        return;
    g_ptr_array_unref(config->uris);
    g_ptr_array_unref(config->domains);
    g_ptr_array_unref(config->symbol_folders);
    g_ptr_array_unref(config->destinations);
    g_free(config->store);
    g_free(config->metrics_folder);
    g_free(config);
}

static bool
take_destination(UprofConfig *config, const UprofDestinationXml *xml, GError **error)
{
    UprofDestination *destination = uprof_destination_new(xml, error);

    if (!destination) {
        g_prefix_error(error, "line %ld: ", xml->line);
        return false;
    }
    g_ptr_array_add(config->destinations, destination);
    if (destination->max_age_ns > config->slice_days * UPROF_DAY_S * UPROF_NS_PER_S) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "line %ld: destination/@maxAge='%s' is longer than store/@sliceDays, for which "
                    "rounds are kept",
                    xml->line, xml->max_age);
        return false;
    }
    for (guint i = 0; i + 1 < config->destinations->len; i++) {
        const UprofDestination *other = g_ptr_array_index(config->destinations, i);
        if (strcmp(other->name, destination->name) != 0)
            continue;
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "line %ld: more than one destination is called '%s'", xml->line, other->name);
        return false;
    }
    return true;
}

UprofConfig *
uprof_config_parse(UprofSlice text, GError **error)
{
    g_autoptr(UprofConfigXml) xml = uprof_config_xml_parse(text, error);
    if (!xml)
        return NULL;

    g_autoptr(UprofConfig) config = uprof_config_new();
    for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
        const char *said = G_STRUCT_MEMBER(char *, xml, values[i].text);
        if (!said || values[i].take(said, G_STRUCT_MEMBER_P(config, values[i].value)))
            continue;
        g_autofree char *quoted = uprof_text_quote(said);
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s='%s' is not %s", values[i].name,
                    quoted, values[i].form);
        return NULL;
    }
    for (guint i = 0; i < xml->destinations->len; i++)
        if (!take_destination(config, g_ptr_array_index(xml->destinations, i), error))
            return NULL;
    return g_steal_pointer(&config);
}

/* The file decides which files root opens and where root writes, so only root may write it. */
static bool
check_owner(int fd, GError **error)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return uprof_error_fail_errno(error, "cannot read its owner");
    if (!S_ISREG(info.st_mode)) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "it is not a regular file");
        return false;
    }
    if (!uprof_owner_is_safe(&info, UPROF_OWNER_FOR_ROOT, geteuid())) {
        g_set_error_literal(
            error, UPROF_ERROR, UPROF_ERROR_DENIED,
            "users other than root may write it; run: chown root and chmod go-w on it");
        return false;
    }
    return true;
}

static UprofConfig *
load_file(int fd, GError **error)
{
    g_autoptr(GByteArray) text = g_byte_array_new();

    if (!check_owner(fd, error))
        return NULL;
    if (!uprof_read_all(fd, UPROF_CONFIG_BYTES_MAX + 1, text)) {
        uprof_error_fail_errno(error, "cannot read it");
        return NULL;
    }
    return uprof_config_parse((UprofSlice){ text->data, text->len }, error);
}

UprofConfig *
uprof_config_load(const char *path, GError **error)
{
    const char *file = path ? path : UPROF_CONFIG_FILE;
    g_autofree char *quoted = uprof_text_quote(file);
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const int reason = errno;

    if (fd < 0 && !path && reason == ENOENT)
        return uprof_config_new();
    if (fd < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot read configuration '%s': %s",
                    quoted, g_strerror(reason));
        return NULL;
    }

    UprofConfig *config = load_file(fd, error);
    close(fd);
    if (!config)
        g_prefix_error(error, "configuration '%s': ", quoted);
    return config;
}

bool
uprof_config_has_domain(const UprofConfig *config, const char *name)
{
    return uprof_name_pattern_any(config->domains, name);
}

static bool
matches_any(const char *pattern, const GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++)
        if (uprof_name_pattern_matches(pattern, g_ptr_array_index(names, i)))
            return true;
    return false;
}

bool
uprof_config_names_others(const UprofConfig *config, const GPtrArray *names)
{
    for (guint i = 0; i < config->domains->len; i++)
        if (!matches_any(g_ptr_array_index(config->domains, i), names))
            return true;
    return false;
}
