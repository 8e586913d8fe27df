/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dump: one stack per vCPU, now. A guest that somebody has paused is looked at
 * and stays paused.
 */
#include "commands-priv.h"

#include "domid-priv.h"
#include "exit-priv.h"
#include "session-priv.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>

static const char *
name_how(UprofHow how)
{
    /* clang-format off */
    static const char *const names[] = {
        [UPROF_HOW_PC] = "pc",
        [UPROF_HOW_FP] = "fp",
        [UPROF_HOW_ORC] = "orc",
        [UPROF_HOW_CFI] = "cfi",
        [UPROF_HOW_LEAF] = "leaf",
    };
    /* clang-format on */

    return names[how];
}

/* Returns: how many functions stand there, outermost first: all but the first were inlined */
static unsigned
find_functions(const UprofSession *session, const UprofSymAnswer *answer,
               const UprofName *const **functions)
{
    *functions = &answer->name;
    return MAX(uprof_sym_expand(session->pipeline->sym, answer->place, functions), 1);
}

static UprofSymAnswer
name_frame(const UprofSession *session, const UprofFrame *frame)
{
    return uprof_sym_find(session->pipeline->sym, frame->place, frame->is_return);
}

/* Returns: (transfer full): which process ran, as words behind its mode; perhaps none */
static char *
describe_process(const UprofSession *session, const UprofSnapshot *snapshot)
{
    UprofLinuxTask task;

    if (!uprof_linux_task(session->pipeline->kernel, snapshot, &task))
        return g_strdup("");
    g_autofree char *name =
        uprof_text_quote_slice((UprofSlice){ task.name, strnlen(task.name, sizeof(task.name)) });
    return g_strdup_printf(", process %s[%u]", name, task.process);
}

static void
append_text(GString *out, const UprofSession *session, const UprofSnapshot *snapshot)
{
    const UprofPipeline *pipeline = session->pipeline;
    const UprofStack *stack = pipeline->stack;

    if (pipeline->is_idle) {
        g_string_append_printf(out, "%s vcpu%u idle (halted)\n", session->shown, snapshot->vcpu);
        return;
    }
    g_autofree char *process = describe_process(session, snapshot);
    g_string_append_printf(out, "%s vcpu%u %s%s: %u frame%s, %s\n", session->shown, snapshot->vcpu,
                           snapshot->regs.privilege == 0 ? "kernel" : "user", process, stack->n,
                           stack->n == 1 ? "" : "s", uprof_end_name(stack->end));
    for (unsigned i = 0; i < stack->n; i++) {
        const UprofFrame *frame = &stack->frames[i];
        const UprofSymAnswer answer = name_frame(session, frame);
        const UprofName *const *functions;
        const unsigned n = find_functions(session, &answer, &functions);
        for (unsigned j = n; j-- > 1;)
            g_string_append_printf(out, "       %016" G_GINT64_MODIFIER "x  %s\n", frame->pc,
                                   uprof_name_text(functions[j]));
        g_string_append_printf(out, "  #%-3u %016" G_GINT64_MODIFIER "x  %s\n", i, frame->pc,
                               uprof_name_text(functions[0]));
    }
}

static void
append_json(GString *out, const UprofSession *session, const UprofSnapshot *snapshot, bool first)
{
    const UprofPipeline *pipeline = session->pipeline;
    const UprofStack *stack = pipeline->stack;

    g_string_append_printf(out, "%s{\"vcpu\": %u, \"idle\": %s, \"mode\": \"%s\", ",
                           first ? "" : ",\n  ", snapshot->vcpu,
                           pipeline->is_idle ? "true" : "false",
                           snapshot->regs.privilege == 0 ? "kernel" : "user");
    UprofLinuxTask task;
    if (uprof_linux_task(pipeline->kernel, snapshot, &task)) {
        g_autofree char *name = uprof_text_quote_slice(
            (UprofSlice){ task.name, strnlen(task.name, sizeof(task.name)) });
        g_string_append(out, "\"process\": \"");
        uprof_text_append_json(out, name);
        g_string_append_printf(out, "\", \"pid\": %u, ", task.process);
    }
    g_string_append_printf(out, "\"complete\": %s, \"end\": \"%s\", \"frames\": [",
                           !pipeline->is_idle && uprof_unwind_is_complete(stack) ? "true" : "false",
                           pipeline->is_idle ? "idle" : uprof_end_name(stack->end));
    for (unsigned i = 0; i < stack->n && !pipeline->is_idle; i++) {
        const UprofFrame *frame = &stack->frames[i];
        const UprofSymAnswer answer = name_frame(session, frame);
        const UprofName *const *functions;
        const unsigned n = find_functions(session, &answer, &functions);
        g_string_append_printf(out, "%s{\"address\": \"0x%" G_GINT64_MODIFIER "x\", \"name\": \"",
                               i > 0 ? ", " : "", frame->pc);
        uprof_text_append_json(out, uprof_name_text(functions[0]));
        g_string_append(out, "\", \"inlined\": [");
        for (unsigned j = n; j-- > 1;) {
            g_string_append(out, j + 1 < n ? ", \"" : "\"");
            uprof_text_append_json(out, uprof_name_text(functions[j]));
            g_string_append_c(out, '"');
        }
        g_string_append_printf(out, "], \"image\": \"%s\", \"how\": \"%s\"}",
                               answer.image ? answer.image : "", name_how(frame->how));
    }
    g_string_append(out, "]}");
}

static int
print_stacks(UprofSession *session, UprofSnapshot **slots, unsigned n, bool json)
{
    GString *out = g_string_new(NULL);

    if (json) {
        g_string_append(out, "{\"domain\": \"");
        uprof_text_append_json(out, session->shown);
        g_string_append_printf(out, "\", \"uuid\": \"%s\", \"paused\": %s,\n \"vcpus\": [",
                               session->domain->uuid, session->guest->paused ? "true" : "false");
    }
    for (unsigned i = 0; i < n; i++) {
        uprof_pipeline_take(session->pipeline, slots[i], NULL);
        uprof_sym_resolve(session->pipeline->sym);
        if (json)
            append_json(out, session, slots[i], i == 0);
        else
            append_text(out, session, slots[i]);
    }
    if (json)
        g_string_append(out, "]}\n");
    fputs(out->str, stdout);
    g_string_free(out, TRUE);
    return fflush(stdout) == 0 ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
}

/*
 * What belongs to a sample of a Linux guest, such as which process runs, is known once the
 * kernel is: then another one is taken.
 */
static UprofAnswer
take_stacks(UprofSession *session, UprofSnapshot **slots, unsigned *n, GError **error)
{
    const UprofAnswer answer = uprof_sampler_shoot(session->sampler, slots, n, error);

    for (unsigned i = 0; answer == UPROF_OK && i < *n; i++) {
        slots[i]->is_prime = true;
        uprof_pipeline_take(session->pipeline, slots[i], NULL);
        slots[i]->is_prime = false;
    }
    return *uprof_linux_links(session->pipeline->kernel)
               ? uprof_sampler_shoot(session->sampler, slots, n, error)
               : answer;
}

static int
shoot(UprofSession *session, bool json)
{
    g_autoptr(GError) error = NULL;
    g_autofree UprofSnapshot **slots = g_new0(UprofSnapshot *, session->guest->n_vcpus);
    UprofSnapshot *pool = g_new0(UprofSnapshot, session->guest->n_vcpus);
    unsigned n = 0;
    int code;

    for (unsigned i = 0; i < session->guest->n_vcpus; i++)
        slots[i] = &pool[i];
    switch (take_stacks(session, slots, &n, &error)) {
    case UPROF_OK:
    case UPROF_ABSENT:
        code = print_stacks(session, slots, n, json);
        break;
    case UPROF_BUSY:
        uprof_say("virt-uprof: %s: somebody else stops, moves or saves it just now",
                  session->shown);
        code = UPROF_EXIT_DOMAIN;
        break;
    case UPROF_STUCK:
        uprof_say("virt-uprof: %s: no vCPU has stopped within --max-pause", session->shown);
        code = UPROF_EXIT_USELESS;
        break;
    case UPROF_GONE:
        uprof_say("virt-uprof: %s: it has just ended", session->shown);
        code = UPROF_EXIT_DOMAIN;
        break;
    default:
        code = uprof_say_error(error);
    }
    g_free(pool);
    return code;
}

/* Nothing grows here from one sample to the next: take all there may be at once. */
static void
widen_windows(UprofSession *session)
{
    for (unsigned i = 0; i < session->guest->n_vcpus; i++)
        session->sizes[i].wanted = UPROF_SNAPSHOT_BYTES_MAX;
}

static int
dump_domain(UprofHost *host, const char *word, UprofOptions *options, UprofGuardian *guardian)
{
    g_autoptr(GError) error = NULL;
    bool locked = false;
    UprofDomain *domain = uprof_domid_find(host, word, options->quiet, &error);

    if (!domain)
        return uprof_say_error(error);
    g_autoptr(UprofSession) session =
        uprof_session_open(domain, options, guardian, true, true, &locked, &error);
    if (!session || !uprof_session_prepare(session, options, NULL, NULL, NULL, &error)) {
        const int code = uprof_say_error(error);
        return locked ? UPROF_EXIT_LOCKED : code;
    }
    widen_windows(session);
    return shoot(session, options->json);
}

int
uprof_dump_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    UprofGuardian *guardian = uprof_guardian_start(uprof_access_find, &error);
    UprofExitTally tally = { 0 };

    if (!guardian)
        return uprof_say_error(error);
    uprof_host_init();
    int code = uprof_session_heal(options->quiet);
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, false, &error);
    if (!host)
        uprof_exit_count(&tally, uprof_say_error(error));
    for (guint i = 0; host && i < options->words->len; i++)
        uprof_exit_count(
            &tally, dump_domain(host, g_ptr_array_index(options->words, i), options, guardian));
    code = uprof_exit_worse(code, uprof_exit_of(&tally));
    return uprof_exit_worse(code, uprof_session_end_guardian(guardian, false, options->quiet));
}
