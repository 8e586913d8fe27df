/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-priv.h"

#include "access-priv.h"
#include "domid-priv.h"
#include "exit-priv.h"
#include "helper-priv.h"
#include "record-priv.h"
#include "session-priv.h"
#include "store-priv.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <string.h>

/* What stands before each row of the answer to uprof_task_look(). */
#define ROW_ERROR "error"
#define ROW_WARNING "warning"
#define ROW_TROUBLE "trouble"
#define ROW_DOMAIN "domain"
#define ROW_MISSING "missing"
#define ROW_ALIVE "alive"

/* uuid, name, duration, obstacle, whether that is a fault */
enum { DOMAIN_TEXTS = 5 };

static void
put_row(int fd, const char *kind, const char *text)
{
    uprof_helper_put(fd, kind);
    uprof_helper_put(fd, text);
}

static int
put_error(int fd, const GError *error)
{
    put_row(fd, ROW_ERROR, error->message);
    return uprof_exit_code(error);
}

static void
warn_of_unknown(int fd, const UprofDomain *domain)
{
    g_autofree char *name = uprof_text_quote(domain->name);
    g_autofree char *unknown = uprof_text_quote(domain->xml->metadata.unknown);
    g_autofree char *text =
        g_strdup_printf("%s: metadata: unknown part '%s' is ignored", name, unknown);

    if (domain->xml->metadata.unknown)
        put_row(fd, ROW_WARNING, text);
}

/* Whether such a domain is enabled is not known: it is not left out without a word. */
static void
warn_of_bad_xml(int fd, const UprofDomain *domain)
{
    g_autofree char *name = uprof_text_quote(domain->name);
    g_autofree char *why = uprof_text_quote(domain->bad_xml ? domain->bad_xml : "");
    g_autofree char *text =
        g_strdup_printf("%s: its metadata cannot be read: %s; see: virsh dumpxml", name, why);

    if (domain->bad_xml)
        put_row(fd, ROW_TROUBLE, text);
}

/* Returns: (transfer full) (nullable): why it is not sampled, though it is wanted */
static char *
find_obstacle(UprofHost *host, const UprofDomain *domain)
{
    const char *job;

    if (uprof_access_is_host(domain))
        return g_strdup("it is dom0");
    if (domain->state != UPROF_DOMAIN_RUNNING)
        return g_strdup_printf("it is %s", domain->state_name);
    if (domain->xml->security)
        return g_strdup("its memory is encrypted");
    job = uprof_host_job(host, domain);
    return job ? g_strdup_printf("there is %s", job) : NULL;
}

/* One domain that may be wanted; @is_named: on the command line. */
static void
look_at(int fd, const UprofLook *look, UprofHost *host, const UprofDomain *domain, bool is_named)
{
    const UprofConfig *config = look->options->config;
    UprofSettings settings = look->options->settings;
    g_autoptr(GError) bad = NULL;
    g_autofree char *obstacle = NULL;

    if (!uprof_settings_take_metadata(&settings, &domain->xml->metadata, config, NULL, &bad))
        obstacle = is_named ? NULL : g_strdup(bad->message); /* who named it wants it anyway */
    else if (!domain->xml->metadata.present)
        settings.enabled = uprof_config_has_domain(config, domain->name);
    warn_of_unknown(fd, domain);
    if (domain->state == UPROF_DOMAIN_SHUTOFF && !is_named)
        return;
    warn_of_bad_xml(fd, domain);
    if (!bad && !settings.enabled && !is_named)
        return;
    if (!obstacle)
        obstacle = find_obstacle(host, domain);
    uprof_helper_put(fd, ROW_DOMAIN);
    uprof_helper_put(fd, domain->uuid);
    uprof_helper_put(fd, domain->name);
    uprof_helper_put_number(fd, settings.duration_ns);
    uprof_helper_put(fd, obstacle ? obstacle : "");
    uprof_helper_put_number(fd, bad && !is_named);
}

static int
look_at_all(int fd, const UprofLook *look, UprofHost *host)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_host_list(host, &error);

    if (!domains)
        return put_error(fd, error);
    for (guint i = 0; i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        put_row(fd, ROW_ALIVE, "");
        if (!uprof_access_is_host(domain))
            look_at(fd, look, host, domain, false);
    }
    return UPROF_EXIT_OK;
}

static int
look_at_named(int fd, const UprofLook *look, UprofHost *host)
{
    const GPtrArray *words = look->options->words;

    for (guint i = 0; i < words->len; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofDomain) domain =
            uprof_domid_find(host, g_ptr_array_index(words, i), true, &error);
        put_row(fd, ROW_ALIVE, "");
        if (domain)
            look_at(fd, look, host, domain, true);
        else if (g_error_matches(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND))
            put_row(fd, ROW_MISSING, error->message);
        else
            return put_error(fd, error);
    }
    return UPROF_EXIT_OK;
}

int
uprof_task_heal(int fd, void *data)
{
    const UprofOptions *options = data;

    uprof_host_init();
    return uprof_session_heal(options->quiet);
}

int
uprof_task_look(int fd, void *data)
{
    const UprofLook *look = data;
    g_autoptr(GError) error = NULL;

    uprof_host_init();
    put_row(fd, ROW_ALIVE, "");
    g_autoptr(UprofHost) host = uprof_host_open(look->uri, true, &error);
    if (!host)
        return put_error(fd, error);
    put_row(fd, ROW_ALIVE, "");
    return look->options->words->len > 0 ? look_at_named(fd, look, host)
                                         : look_at_all(fd, look, host);
}

static uint64_t
to_number(const char *text)
{
    uint64_t number = 0;

    uprof_slice_to_uint((UprofSlice){ text, strlen(text) }, 10, 0, UINT64_MAX, &number);
    return number;
}

static const char *
text_at(const GPtrArray *texts, guint i)
{
    return i < texts->len ? g_ptr_array_index(texts, i) : "";
}

static UprofCandidate *
read_candidate(const GPtrArray *texts, guint at, const char *uri)
{
    UprofCandidate *candidate = g_new0(UprofCandidate, 1);
    const char *obstacle = text_at(texts, at + 3);

    candidate->uuid = g_strdup(text_at(texts, at));
    candidate->name = g_strdup(text_at(texts, at + 1));
    candidate->uri = g_strdup(uri);
    candidate->duration_ns = to_number(text_at(texts, at + 2));
    candidate->obstacle = *obstacle ? g_strdup(obstacle) : NULL;
    candidate->is_fault = to_number(text_at(texts, at + 4)) > 0;
    return candidate;
}

void
uprof_task_read_look(const GPtrArray *texts, const char *uri, UprofLookResult *result)
{
    for (guint i = 0; i < texts->len;) {
        const char *kind = text_at(texts, i++);
        GPtrArray *lines = NULL;

        if (strcmp(kind, ROW_DOMAIN) == 0) {
            if (i + DOMAIN_TEXTS <= texts->len)
                g_ptr_array_add(result->candidates, read_candidate(texts, i, uri));
            i += DOMAIN_TEXTS;
            continue;
        }
        if (strcmp(kind, ROW_WARNING) == 0)
            lines = result->warnings;
        else if (strcmp(kind, ROW_TROUBLE) == 0)
            lines = result->troubles;
        else if (strcmp(kind, ROW_MISSING) == 0)
            lines = result->missing;
        else if (strcmp(kind, ROW_ERROR) == 0)
            lines = result->errors;
        if (lines)
            g_ptr_array_add(lines, g_strdup(text_at(texts, i)));
        i++;
    }
}

/* ---- One domain ---- */

static void
want(UprofOptions *options, const char *base, const char *ending)
{
    UprofWanted *wanted = g_new0(UprofWanted, 1);
    g_autofree char *path = g_strconcat(base, ending, NULL);
    g_auto(GStrv) parts = g_strsplit(path, "%", -1);

    wanted->path = g_strjoinv("%%", parts); /* safe names have %XX */
    wanted->format = uprof_format_by_path(path);
    g_ptr_array_add(options->outputs, wanted);
}

static void
note_run(const UprofRun *run, void *data)
{
    UprofTaskResult *result = data;

    result->samples = run->samples;
    result->duration_ns = run->duration_ns;
    result->held_ns = uprof_run_held_ns(run);
}

/* The domain's name stands in front of the result anyway. */
static const char *
strip_prefixes(const char *line, const char *name)
{
    static const char program[] = "virt-uprof: ";

    if (g_str_has_prefix(line, program))
        line += strlen(program);
    if (g_str_has_prefix(line, name) && g_str_has_prefix(line + strlen(name), ": "))
        line += strlen(name) + strlen(": ");
    return line;
}

int
uprof_task_sample(int fd, void *data)
{
    const UprofTask *task = data;
    UprofOptions *options = task->options; /* this process has its own */
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *name = uprof_text_quote(task->candidate->name);
    UprofTaskResult result = { 0 };

    g_free(options->uri);
    options->uri = g_strdup(task->candidate->uri);
    options->only_enabled = options->words->len == 0; /* who was named is wanted anyway */
    g_ptr_array_set_size(options->words, 0);
    g_ptr_array_add(options->words, g_strdup(task->candidate->uuid));
    options->quiet = options->no_wait = options->in_store = options->no_heal = true;
    options->json = false;
    /* the sidecar goes last: it says that all is there */
    want(options, task->base, UPROF_STORE_PROFILE);
    want(options, task->base, UPROF_STORE_SIDECAR);
    uprof_say_divert(lines);
    const int code = uprof_record_run_told(options, note_run, &result);
    uprof_say_divert(NULL);
    uprof_helper_put_number(fd, result.samples);
    uprof_helper_put_number(fd, result.duration_ns);
    uprof_helper_put_number(fd, result.held_ns);
    for (guint i = 0; i < lines->len; i++)
        uprof_helper_put(fd, strip_prefixes(g_ptr_array_index(lines, i), name));
    return code;
}

void
uprof_task_result_clear(UprofTaskResult *result)
{
    g_clear_pointer(&result->reason, g_free);
    g_clear_pointer(&result->lines, g_ptr_array_unref);
}

void
uprof_task_read_sample(const GPtrArray *texts, UprofTaskResult *result)
{
    enum { NUMBERS = 3 };

    *result = (UprofTaskResult){
        .samples = to_number(text_at(texts, 0)),
        .duration_ns = to_number(text_at(texts, 1)),
        .held_ns = to_number(text_at(texts, 2)),
        .lines = g_ptr_array_new_with_free_func(g_free),
    };
    for (guint i = NUMBERS; i + 1 < texts->len; i++)
        g_ptr_array_add(result->lines, g_strdup(text_at(texts, i)));
    if (texts->len > NUMBERS)
        result->reason = g_strdup(text_at(texts, texts->len - 1));
}
