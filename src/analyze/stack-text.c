/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/stack-text.h"

#include "uprof/text.h"

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
        [UPROF_HOW_CODE] = "code",
    };
    /* clang-format on */

    return names[how];
}

/*
 * @functions: (out): the functions at the frame, outermost first. All but the first are inlined.
 *
 * Returns: the number of functions
 */
static unsigned
find_functions(UprofSym *sym, const UprofSymAnswer *answer, const UprofName *const **functions)
{
    *functions = &answer->name;
    return MAX(uprof_sym_expand(sym, answer->site, functions), 1);
}

static UprofSymAnswer
name_frame(UprofSym *sym, const UprofFrame *frame)
{
    return uprof_sym_find(sym, frame->symbol_address, frame->is_return);
}

/* Returns: (transfer full): ", process NAME[ID]", or "" if the process is unknown */
static char *
describe_process(const UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    UprofLinuxTask task;

    if (!uprof_linux_task(pipeline->kernel, snapshot, &task))
        return g_strdup("");
    g_autofree char *name =
        uprof_text_quote_slice((UprofSlice){ task.name, strnlen(task.name, sizeof(task.name)) });
    return g_strdup_printf(", process %s[%u]", name, task.process);
}

void
uprof_stack_text_append_frames(GString *out, UprofSym *sym, const UprofFrame *frames,
                               unsigned n_frames)
{
    for (unsigned i = 0; i < n_frames; i++) {
        const UprofSymAnswer answer = name_frame(sym, &frames[i]);
        const UprofName *const *functions;
        const unsigned n = find_functions(sym, &answer, &functions);
        for (unsigned j = n; j-- > 1;)
            g_string_append_printf(out, "       %016" G_GINT64_MODIFIER "x  %s\n", frames[i].pc,
                                   uprof_name_text(functions[j]));
        g_string_append_printf(out, "  #%-3u %016" G_GINT64_MODIFIER "x  %s\n", i, frames[i].pc,
                               uprof_name_text(functions[0]));
    }
}

void
uprof_stack_text_append(GString *out, const UprofPipeline *pipeline, const UprofSnapshot *snapshot,
                        const char *shown)
{
    const UprofStack *stack = pipeline->stack;

    if (pipeline->is_idle) {
        g_string_append_printf(out, "%s vcpu%u idle (halted)\n", shown, snapshot->vcpu);
        return;
    }
    g_autofree char *process = describe_process(pipeline, snapshot);
    g_string_append_printf(out, "%s vcpu%u %s%s: %u frame%s, %s\n", shown, snapshot->vcpu,
                           snapshot->regs.privilege == 0 ? "kernel" : "user", process, stack->n,
                           stack->n == 1 ? "" : "s", uprof_end_name(stack->end));
    uprof_stack_text_append_frames(out, pipeline->sym, stack->frames, stack->n);
}

static void
write_frame(UprofJsonWriter *json, UprofSym *sym, const UprofFrame *frame)
{
    const UprofSymAnswer answer = name_frame(sym, frame);
    g_autofree char *address = g_strdup_printf("0x%" G_GINT64_MODIFIER "x", frame->pc);
    const UprofName *const *functions;
    const unsigned n = find_functions(sym, &answer, &functions);

    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "address", address);
    uprof_json_string(json, "name", uprof_name_text(functions[0]));
    uprof_json_begin(json, "inlined", UPROF_JSON_ARRAY);
    for (unsigned i = n; i-- > 1;)
        uprof_json_string(json, NULL, uprof_name_text(functions[i]));
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_string(json, "image", answer.image ? answer.image : "");
    uprof_json_string(json, "how", name_how(frame->how));
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

void
uprof_stack_text_write_frames(UprofJsonWriter *json, UprofSym *sym, const UprofFrame *frames,
                              unsigned n)
{
    uprof_json_begin(json, "frames", UPROF_JSON_ARRAY);
    for (unsigned i = 0; i < n; i++)
        write_frame(json, sym, &frames[i]);
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

static void
write_task(UprofJsonWriter *json, const UprofLinuxTask *task)
{
    g_autofree char *name =
        uprof_text_quote_slice((UprofSlice){ task->name, strnlen(task->name, sizeof(task->name)) });

    uprof_json_string(json, "process", name);
    uprof_json_uint(json, "pid", task->process);
}

void
uprof_stack_text_write(UprofJsonWriter *json, const UprofPipeline *pipeline,
                       const UprofSnapshot *snapshot)
{
    const UprofStack *stack = pipeline->stack;
    const bool is_idle = pipeline->is_idle;
    UprofLinuxTask task;

    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_uint(json, "vcpu", snapshot->vcpu);
    uprof_json_bool(json, "idle", is_idle);
    uprof_json_string(json, "mode", snapshot->regs.privilege == 0 ? "kernel" : "user");
    if (uprof_linux_task(pipeline->kernel, snapshot, &task))
        write_task(json, &task);
    uprof_json_bool(json, "complete", !is_idle && uprof_unwind_is_complete(stack));
    uprof_json_string(json, "end", is_idle ? "idle" : uprof_end_name(stack->end));
    uprof_stack_text_write_frames(json, pipeline->sym, stack->frames, is_idle ? 0 : stack->n);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    uprof_json_break_line(json, "\n  ");
}
