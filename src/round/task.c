/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-priv.h"

#include "helper-priv.h"
#include "uprof/access.h"
#include "uprof/domid.h"
#include "uprof/record-domains.h"
#include "uprof/scan.h"
#include "uprof/store.h"
#include "uprof/text.h"

#include <string.h>
#include <unistd.h>

/* Kinds of rows in the answer of uprof_task_scan(). The kind is the first text of each row. */
#define ROW_ERROR "error"
#define ROW_WARNING "warning"
#define ROW_UNREADABLE "unreadable"
#define ROW_DOMAIN "domain"
#define ROW_MISSING "missing"
#define ROW_ALIVE "alive"

/* Texts of a row of ROW_DOMAIN: UUID, name, duration, obstacle, is_fault */
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
    return uprof_error_code_of(error);
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

/* Warns of XML that cannot be parsed: it is not known whether its domain is enabled. */
static void
warn_of_bad_xml(int fd, const UprofDomain *domain)
{
    g_autofree char *name = uprof_text_quote(domain->name);
    g_autofree char *why = uprof_text_quote(domain->bad_xml ? domain->bad_xml : "");
    g_autofree char *text =
        g_strdup_printf("%s: its metadata cannot be read: %s; see: virsh dumpxml", name, why);

    if (domain->bad_xml)
        put_row(fd, ROW_UNREADABLE, text);
}

/* Returns: (transfer full) (nullable): why an enabled domain cannot be sampled now */
static char *
find_obstacle(UprofHost *host, const UprofDomain *domain)
{
    if (uprof_access_is_host(domain))
        return g_strdup("it is dom0");
    if (domain->state != UPROF_DOMAIN_RUNNING)
        return g_strdup_printf("it is %s", domain->state_name);
    if (domain->xml->security)
        return g_strdup("its memory is encrypted");
    return g_strdup(uprof_host_job(host, domain));
}

/* Adds the domain to the answer if the round should sample it. @is_named: by the user */
static void
scan_domain(int fd, const UprofHostScan *scan, UprofHost *host, const UprofDomain *domain,
            bool is_named)
{
    const UprofConfig *config = scan->config;
    UprofSettings settings = *scan->run;
    g_autoptr(GError) bad = NULL;
    g_autofree char *obstacle = NULL;

    if (!uprof_settings_take_metadata(&settings, &domain->xml->metadata, config, NULL, &bad))
        obstacle = is_named ? NULL : g_strdup(bad->message); /* a named domain is sampled anyway */
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

static void
keep_hint(UprofNoticeKind kind, const char *text, void *data)
{
    char **hint = data;

    g_free(*hint);
    *hint = g_strdup(text);
}

/* The configuration may name domains of xl. If it names none of them, it does not matter that they
 * cannot be listed. */
static bool
may_name_xl(const UprofConfig *config, const GPtrArray *domains)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (guint i = 0; i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        if (!uprof_access_is_host(domain))
            g_ptr_array_add(names, domain->name);
    }
    return uprof_config_names_others(config, names);
}

static int
scan_all(int fd, const UprofHostScan *scan, UprofHost *host)
{
    g_autofree char *hint = NULL;
    const UprofNotices notices = { keep_hint, &hint };
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_domid_list(host, &notices, &error);

    if (!domains)
        return put_error(fd, error);
    if (hint && may_name_xl(scan->config, domains))
        put_row(fd, ROW_WARNING, hint);
    for (guint i = 0; i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        put_row(fd, ROW_ALIVE, "");
        if (!uprof_access_is_host(domain))
            scan_domain(fd, scan, host, domain, false);
    }
    return UPROF_ERROR_NONE;
}

static int
scan_named(int fd, const UprofHostScan *scan, UprofHost *host)
{
    const GPtrArray *words = scan->words;

    for (guint i = 0; i < words->len; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofDomain) domain =
            uprof_domid_find(host, g_ptr_array_index(words, i), NULL, &error);
        put_row(fd, ROW_ALIVE, "");
        if (domain)
            scan_domain(fd, scan, host, domain, true);
        else if (g_error_matches(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND))
            put_row(fd, ROW_MISSING, error->message);
        else
            return put_error(fd, error);
    }
    return UPROF_ERROR_NONE;
}

int
uprof_task_recover(int fd, void *data)
{
    return uprof_session_recover(data);
}

int
uprof_task_scan(int fd, void *data)
{
    const UprofHostScan *scan = data;
    g_autoptr(GError) error = NULL;

    put_row(fd, ROW_ALIVE, "");
    g_autoptr(UprofHost) host = uprof_host_open(scan->uri, true, &error);
    if (!host)
        return put_error(fd, error);
    put_row(fd, ROW_ALIVE, "");
    return scan->words->len > 0 ? scan_named(fd, scan, host) : scan_all(fd, scan, host);
}

static uint64_t
read_number(const char *text)
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
    candidate->duration_ns = read_number(text_at(texts, at + 2));
    candidate->obstacle = *obstacle ? g_strdup(obstacle) : NULL;
    candidate->is_fault = read_number(text_at(texts, at + 4)) > 0;
    return candidate;
}

void
uprof_host_scan_result_init(UprofHostScanResult *result)
{
    *result = (UprofHostScanResult){
        .candidates = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_candidate_free),
        .warnings = g_ptr_array_new_with_free_func(g_free),
        .unreadable = g_ptr_array_new_with_free_func(g_free),
        .missing = g_ptr_array_new_with_free_func(g_free),
        .errors = g_ptr_array_new_with_free_func(g_free),
    };
}

void
uprof_host_scan_result_clear(UprofHostScanResult *result)
{
    g_clear_pointer(&result->candidates, g_ptr_array_unref);
    g_clear_pointer(&result->warnings, g_ptr_array_unref);
    g_clear_pointer(&result->unreadable, g_ptr_array_unref);
    g_clear_pointer(&result->missing, g_ptr_array_unref);
    g_clear_pointer(&result->errors, g_ptr_array_unref);
}

/* Returns: (nullable): the list for lines of @kind */
static GPtrArray *
find_lines(const UprofHostScanResult *result, const char *kind)
{
    const struct {
        const char *kind;
        GPtrArray *lines;
    } rows[] = {
        { ROW_WARNING, result->warnings },
        { ROW_UNREADABLE, result->unreadable },
        { ROW_MISSING, result->missing },
        { ROW_ERROR, result->errors },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (strcmp(kind, rows[i].kind) == 0)
            return rows[i].lines;
    return NULL;
}

void
uprof_task_read_scan(const GPtrArray *texts, const char *uri, UprofHostScanResult *result)
{
    for (guint i = 0; i < texts->len;) {
        const char *kind = text_at(texts, i++);
        if (strcmp(kind, ROW_DOMAIN) == 0) {
            if (i + DOMAIN_TEXTS <= texts->len)
                g_ptr_array_add(result->candidates, read_candidate(texts, i, uri));
            i += DOMAIN_TEXTS;
            continue;
        }
        GPtrArray *lines = find_lines(result, kind);
        if (lines)
            g_ptr_array_add(lines, g_strdup(text_at(texts, i)));
        i++;
    }
}

/* ---- One domain ---- */

/* Adds an output. Doubles each percent sign of the path, because safe names can contain %XX. */
static void
add_output(GPtrArray *outputs, const char *base, const char *ending, const UprofFormat *format)
{
    g_autofree char *path = g_strconcat(base, ending, NULL);
    g_auto(GStrv) parts = g_strsplit(path, "%", -1);

    g_autofree char *escaped = g_strjoinv("%%", parts);
    uprof_output_request_add(outputs, escaped, format, false);
}

static void
note_run(const UprofRun *run, void *data)
{
    UprofTaskResult *result = data;

    result->samples = run->samples;
    result->duration_ns = run->duration_ns;
    result->held_ns = uprof_run_held_ns(run);
}

static void
keep_warning(UprofNoticeKind kind, const char *text, void *data)
{
    if (kind == UPROF_NOTICE_WARNING)
        g_ptr_array_add(data, g_strdup(text));
}

static void
exit_at_once(void)
{
    _exit(UPROF_ERROR_FAILED);
}

/* Cuts off the domain's name: the round adds the name to each message. */
static const char *
strip_name(const char *line, const char *name)
{
    if (g_str_has_prefix(line, name) && g_str_has_prefix(line + strlen(name), ": "))
        line += strlen(name) + strlen(": ");
    return line;
}

/* Writes the slice of the domain. */
static UprofErrorCode
record_slice(const UprofRoundTask *task, const UprofNotices *notices, UprofTaskResult *result)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_autoptr(GPtrArray) outputs = uprof_output_request_list();
    const UprofRunObserver observer = {
        .saved = note_run,
        .abort_run = exit_at_once,
        .data = result,
    };
    UprofRecordSettings settings = {
        .session = *task->session,
        .words = words,
        .outputs = outputs,
        .store = &task->store,
        .observer = &observer,
    };
    UprofErrorTally tally = { 0 };

    g_ptr_array_add(words, task->candidate->uuid);
    if (task->session->config->destinations->len > 0)
        add_output(outputs, task->base, UPROF_STORE_FUNCTIONS, &uprof_format_functions);
    /* the sidecar is the last file: it is the commit mark of the slice */
    add_output(outputs, task->base, UPROF_STORE_PROFILE, &uprof_format_folded_gz);
    add_output(outputs, task->base, UPROF_STORE_SIDECAR, &uprof_format_meta);
    settings.session.uri = task->candidate->uri;
    settings.session.only_enabled = !task->is_named;
    settings.session.notices = notices;
    const UprofErrorCode code = uprof_record_domains(&settings, &tally);
    return uprof_error_merge(tally.code, code);
}

int
uprof_task_sample(int fd, void *data)
{
    const UprofRoundTask *task = data;
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *name = uprof_text_quote(task->candidate->name);
    const UprofNotices notices = { keep_warning, lines };
    UprofTaskResult result = { 0 };

    const UprofErrorCode code = record_slice(task, &notices, &result);
    uprof_helper_put_number(fd, result.samples);
    uprof_helper_put_number(fd, result.duration_ns);
    uprof_helper_put_number(fd, result.held_ns);
    for (guint i = 0; i < lines->len; i++)
        uprof_helper_put(fd, strip_name(g_ptr_array_index(lines, i), name));
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
        .samples = read_number(text_at(texts, 0)),
        .duration_ns = read_number(text_at(texts, 1)),
        .held_ns = read_number(text_at(texts, 2)),
        .lines = g_ptr_array_new_with_free_func(g_free),
    };
    for (guint i = NUMBERS; i + 1 < texts->len; i++)
        g_ptr_array_add(result->lines, g_strdup(text_at(texts, i)));
    if (texts->len > NUMBERS)
        result->reason = g_strdup(text_at(texts, texts->len - 1));
}
