/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/diagnosis.h"

#include "uprof/text.h"

#include <string.h>

static void
clear_finding(gpointer data)
{
    g_free(((UprofFinding *)data)->topic);
    g_free(((UprofFinding *)data)->text);
}

void
uprof_diagnosis_init(UprofDiagnosis *diagnosis, const char *title)
{
    *diagnosis = (UprofDiagnosis){
        .title = g_strdup(title),
        .findings = g_array_new(FALSE, FALSE, sizeof(UprofFinding)),
    };
    g_array_set_clear_func(diagnosis->findings, clear_finding);
}

void
uprof_diagnosis_clear(UprofDiagnosis *diagnosis)
{
    g_free(diagnosis->title);
    g_array_unref(diagnosis->findings);
}

void
uprof_diagnosis_add(UprofDiagnosis *diagnosis, UprofLevel level, const char *topic,
                    const char *format, ...)
{
    UprofFinding finding = { .level = level, .topic = g_strdup(topic) };
    va_list arguments;

    va_start(arguments, format);
    finding.text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_array_append_val(diagnosis->findings, finding);
}

void
uprof_diagnosis_add_error(UprofDiagnosis *diagnosis, const char *topic, const GError *error)
{
    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_FAIL, topic, "%s", error->message);
    diagnosis->code = uprof_error_merge(diagnosis->code, uprof_error_code_of(error));
}

/* Before the topic and the text of a packed finding. */
typedef struct {
    uint32_t level;               /* UprofLevel */
    uint32_t topic_len, text_len; /* bytes; neither ends with NUL */
} PackedHead;

void
uprof_diagnosis_pack(const UprofDiagnosis *diagnosis, GByteArray *bytes)
{
    for (guint i = 0; i < diagnosis->findings->len; i++) {
        const UprofFinding *finding = &g_array_index(diagnosis->findings, UprofFinding, i);
        const PackedHead head = {
            .level = finding->level,
            .topic_len = (uint32_t)strlen(finding->topic),
            .text_len = (uint32_t)strlen(finding->text),
        };
        g_byte_array_append(bytes, (const guint8 *)&head, sizeof(head));
        g_byte_array_append(bytes, (const guint8 *)finding->topic, head.topic_len);
        g_byte_array_append(bytes, (const guint8 *)finding->text, head.text_len);
    }
}

/* Returns: false at the end, or if the rest is malformed */
static bool
read_finding(UprofDiagnosis *diagnosis, UprofBytes *bytes)
{
    UprofSlice raw, topic, text;
    PackedHead head;

    if (!uprof_bytes_take(bytes, sizeof(head), &raw))
        return false;
    memcpy(&head, raw.data, sizeof(head));
    if (head.level > UPROF_LEVEL_FAIL || !uprof_bytes_take(bytes, head.topic_len, &topic) ||
        !uprof_bytes_take(bytes, head.text_len, &text))
        return false;
    const UprofFinding finding = {
        .level = (UprofLevel)head.level,
        .topic = uprof_text_quote_slice(topic),
        .text = uprof_text_quote_slice(text),
    };
    g_array_append_val(diagnosis->findings, finding);
    if (finding.level == UPROF_LEVEL_FAIL)
        diagnosis->code = uprof_error_merge(diagnosis->code, UPROF_ERROR_FAILED);
    return true;
}

void
uprof_diagnosis_unpack(UprofDiagnosis *diagnosis, UprofSlice packed)
{
    UprofBytes bytes = { .name = "findings", .all = packed };

    while (read_finding(diagnosis, &bytes))
        ;
}
