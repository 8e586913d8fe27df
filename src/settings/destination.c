/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "destination-priv.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/scan.h"
#include "uprof/settings.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include "name-pattern-priv.h"

#include <string.h>

#define NAME_CHARACTERS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.-"
#define LABEL_CHARACTERS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_"

enum {
    NAME_BYTES_MAX = 64,
    URL_BYTES_MAX = 2000,
    LABEL_BYTES_MAX = 200, /* Pyroscope takes names of 1024 and values of 2048 bytes */
    KILOBYTES_MAX = 1024 * 1024,
    AGE_DAYS_MAX = 30,
};

static const char *const type_names[] = {
    [UPROF_DESTINATION_PYROSCOPE] = "pyroscope",
    [UPROF_DESTINATION_PARCA] = "parca",
};

/* Every profile has these labels. */
static const char *const own_labels[] = {
    "service_name", "host", "domain_uuid", "hypervisor", "access", "vcpu", NULL,
};

static bool
fail_value(GError **error, const char *attribute, const char *value, const char *form)
{
    g_autofree char *quoted = uprof_text_quote(value);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "destination/@%s='%s' is not %s",
                attribute, quoted, form);
    return false;
}

static bool
consists_of(const char *text, const char *characters, size_t len_max)
{
    const size_t len = strlen(text);

    return len > 0 && len <= len_max && strspn(text, characters) == len;
}

/* Is it a text for a header or a label: UTF-8 without control characters? */
static bool
is_plain(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return false;
    return g_utf8_validate(text, -1, NULL);
}

static bool
take_name(UprofDestination *destination, const char *name, GError **error)
{
    if (!name || !consists_of(name, NAME_CHARACTERS, NAME_BYTES_MAX) || name[0] == '.' ||
        name[0] == '-')
        return fail_value(error, "name", name ? name : "",
                          "1 to 64 letters, digits, '_', '.' or '-' (and no '.' or '-' first)");
    destination->name = g_strdup(name);
    destination->file = g_strdup(name);
    return true;
}

static bool
take_type(UprofDestination *destination, const char *type, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(type_names); i++) {
        if (g_strcmp0(type, type_names[i]) != 0)
            continue;
        destination->type = (UprofDestinationType)i;
        return true;
    }
    return fail_value(error, "type", type ? type : "", "pyroscope or parca");
}

static bool
take_url(UprofDestination *destination, const char *url, GError **error)
{
    const bool is_short = url && strlen(url) <= URL_BYTES_MAX && is_plain(url);
    g_autoptr(GUri) uri = is_short ? g_uri_parse(url, G_URI_FLAGS_NONE, NULL) : NULL;
    const char *scheme = uri ? g_uri_get_scheme(uri) : NULL;
    const char *host = uri ? g_uri_get_host(uri) : NULL;

    if (uri && g_uri_get_userinfo(uri)) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                            "destination/@url has a user name; use user and passwordFile");
        return false;
    }
    if (!host || !host[0] || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) ||
        g_uri_get_query(uri) || g_uri_get_fragment(uri))
        return fail_value(error, "url", url ? url : "",
                          "a URL such as https://host:4040/path, without user, '?' and '#'");
    destination->url = g_uri_to_string(uri);
    for (size_t len = strlen(destination->url); len > 0 && destination->url[len - 1] == '/'; len--)
        destination->url[len - 1] = '\0';
    return true;
}

static bool
take_path(char **member, const char *attribute, const char *path, GError **error)
{
    if (path && !g_path_is_absolute(path))
        return fail_value(error, attribute, path, "an absolute path");
    *member = g_strdup(path);
    return true;
}

static bool
take_plain(char **member, const char *attribute, const char *text, GError **error)
{
    if (text && (!is_plain(text) || !text[0]))
        return fail_value(error, attribute, text, "text without control characters");
    *member = g_strdup(text);
    return true;
}

static bool
take_paths(UprofDestination *destination, const UprofDestinationXml *xml, GError **error)
{
    if (!take_path(&destination->token_file, "tokenFile", xml->token_file, error) ||
        !take_path(&destination->password_file, "passwordFile", xml->password_file, error) ||
        !take_path(&destination->ca_file, "caFile", xml->ca_file, error) ||
        !take_path(&destination->certificate_file, "certificateFile", xml->certificate_file,
                   error) ||
        !take_path(&destination->key_file, "keyFile", xml->key_file, error))
        return false;
    const bool has_both = destination->user && destination->password_file;
    if (has_both != (destination->user || destination->password_file) ||
        (has_both && destination->token_file)) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                            "destination: give either tokenFile, or user and passwordFile");
        return false;
    }
    if (!destination->certificate_file != !destination->key_file) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                            "destination: give both certificateFile and keyFile, or none of them");
        return false;
    }
    return true;
}

static bool
take_limits(UprofDestination *destination, const UprofDestinationXml *xml, GError **error)
{
    const char *rate = xml->kilobytes_per_s, *vcpus = xml->per_vcpu;
    uint64_t kilobytes = 0;

    destination->max_age_ns = UPROF_DESTINATION_AGE_S * UPROF_NS_PER_S;
    if (xml->max_age &&
        (!uprof_settings_parse_duration(xml->max_age, &destination->max_age_ns) ||
         destination->max_age_ns < 60 * UPROF_NS_PER_S ||
         destination->max_age_ns > AGE_DAYS_MAX * (uint64_t)UPROF_DAY_S * UPROF_NS_PER_S))
        return fail_value(error, "maxAge", xml->max_age, "a time such as 1h, from 1m to 30d");
    if (rate &&
        !uprof_slice_to_uint((UprofSlice){ rate, strlen(rate) }, 10, 0, KILOBYTES_MAX, &kilobytes))
        return fail_value(error, "kilobytesPerSecond", rate, "0 (no limit) to 1048576");
    destination->bytes_per_s = kilobytes * 1000;
    if (vcpus && strcmp(vcpus, "yes") != 0 && strcmp(vcpus, "no") != 0)
        return fail_value(error, "perVcpu", vcpus, "yes or no");
    destination->per_vcpu = vcpus && strcmp(vcpus, "yes") == 0;
    return true;
}

static void
free_label(gpointer data)
{
    UprofLabel *label = data;

    g_free(label->name);
    g_free(label->value);
    g_free(label);
}

GPtrArray *
uprof_labels_new(void)
{
    return g_ptr_array_new_with_free_func(free_label);
}

void
uprof_labels_add(GPtrArray *labels, const char *name, const char *value)
{
    UprofLabel *label = g_new(UprofLabel, 1);

    *label = (UprofLabel){ g_strdup(name), g_strdup(value) };
    g_ptr_array_add(labels, label);
}

bool
uprof_labels_has(const GPtrArray *labels, const char *name)
{
    for (guint i = 0; i < labels->len; i++)
        if (strcmp(((const UprofLabel *)g_ptr_array_index(labels, i))->name, name) == 0)
            return true;
    return false;
}

static bool
check_label_name(const UprofDestination *destination, const char *name, GError **error)
{
    if (!consists_of(name, LABEL_CHARACTERS, LABEL_BYTES_MAX) || g_ascii_isdigit(name[0]) ||
        g_str_has_prefix(name, "__"))
        return fail_value(error, "label", name,
                          "letters, digits and '_' (and neither a digit nor '__' first)");
    if (g_strv_contains(own_labels, name) || uprof_labels_has(destination->labels, name))
        return fail_value(error, "label", name, "a name that no other label has");
    return true;
}

static bool
take_label(UprofDestination *destination, const UprofLabelXml *xml, GError **error)
{
    const char *name = xml->name ? xml->name : "", *value = xml->value ? xml->value : "";

    if (!check_label_name(destination, name, error))
        return false;
    if (!value[0] || strlen(value) > LABEL_BYTES_MAX || !is_plain(value))
        return fail_value(error, "label", value, "1 to 200 bytes without control characters");
    uprof_labels_add(destination->labels, name, value);
    return true;
}

UprofDestination *
uprof_destination_new(const UprofDestinationXml *xml, GError **error)
{
    g_autoptr(UprofDestination) destination = g_new0(UprofDestination, 1);

    g_atomic_ref_count_init(&destination->references);
    destination->domains = uprof_name_pattern_split(xml->domains ? xml->domains : "");
    destination->labels = uprof_labels_new();
    destination->metadata_labels =
        uprof_name_pattern_split(xml->metadata_labels ? xml->metadata_labels : "");
    if (!take_name(destination, xml->name, error) || !take_type(destination, xml->type, error) ||
        !take_url(destination, xml->url, error) ||
        !take_plain(&destination->tenant, "tenant", xml->tenant, error) ||
        !take_plain(&destination->user, "user", xml->user, error) ||
        !take_paths(destination, xml, error) || !take_limits(destination, xml, error))
        return NULL;
    if (destination->user && strchr(destination->user, ':')) {
        fail_value(error, "user", destination->user, "a name without ':'");
        return NULL;
    }
    if (destination->metadata_labels->len + xml->labels->len > UPROF_CONFIG_LABELS_MAX) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "destination '%s' has more than %d labels, with those of metadataLabels",
                    destination->name, UPROF_CONFIG_LABELS_MAX);
        return NULL;
    }
    for (guint i = 0; i < destination->metadata_labels->len; i++)
        if (!check_label_name(destination, g_ptr_array_index(destination->metadata_labels, i),
                              error))
            return NULL;
    for (guint i = 0; i < xml->labels->len; i++)
        if (!take_label(destination, g_ptr_array_index(xml->labels, i), error))
            return NULL;
    return g_steal_pointer(&destination);
}

UprofDestination *
uprof_destination_of_url(const char *url, GError **error)
{
    const char *plus = strstr(url, "+http");
    g_autofree char *type = plus ? g_strndup(url, (gsize)(plus - url)) : g_strdup("pyroscope");
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, url, -1);
    g_autofree char *name = g_strdup_printf("url-%.16s", digest);
    g_autoptr(GPtrArray) no_labels = g_ptr_array_new();
    const UprofDestinationXml xml = {
        .name = name,
        .type = type,
        .url = (char *)(plus ? plus + 1 : url),
        .labels = no_labels,
    };
    UprofDestination *destination = uprof_destination_new(&xml, NULL);

    g_autofree char *quoted = uprof_text_quote(strchr(url, '@') ? "...@..." : url);
    if (destination) {
        g_free(destination->name);
        destination->name = g_steal_pointer(&quoted);
        return destination;
    }
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_USAGE,
                "'%s' is neither a destination of the configuration nor a URL such as "
                "https://host:4040 (Pyroscope) or parca+https://host:7070",
                quoted);
    return NULL;
}

UprofDestination *
uprof_destination_ref(UprofDestination *destination)
{
    g_atomic_ref_count_inc(&destination->references);
    return destination;
}

void
uprof_destination_free(UprofDestination *destination)
{
    if (!destination || !g_atomic_ref_count_dec(&destination->references))
        return;
    g_free(destination->name);
    g_free(destination->file);
    g_free(destination->url);
    g_free(destination->tenant);
    g_ptr_array_unref(destination->domains);
    g_free(destination->user);
    g_free(destination->token_file);
    g_free(destination->password_file);
    g_free(destination->ca_file);
    g_free(destination->certificate_file);
    g_free(destination->key_file);
    g_ptr_array_unref(destination->labels);
    g_ptr_array_unref(destination->metadata_labels);
    g_free(destination);
}

const char *
uprof_destination_type_name(const UprofDestination *destination)
{
    return type_names[destination->type];
}

bool
uprof_destination_has_domain(const UprofDestination *destination, const char *name)
{
    return destination->domains->len == 0 || uprof_name_pattern_any(destination->domains, name);
}
