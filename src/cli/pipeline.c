/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pipeline-priv.h"

#include <string.h>

UprofPipeline *
uprof_pipeline_new(UprofGuest *guest, UprofRun *run, UprofWriter *writer)
{
    UprofPipeline *pipeline = g_new0(UprofPipeline, 1);

    g_mutex_init(&pipeline->lock);
    pipeline->run = run;
    pipeline->names = uprof_names_new();
    uprof_names_limit(pipeline->names, UPROF_PROFILE_NAMES_MAX);
    pipeline->sym = uprof_sym_new(guest->arch, pipeline->names);
    const UprofName *root =
        uprof_names_intern(pipeline->names, (UprofSlice){ run->domain, strlen(run->domain) });
    pipeline->profile = uprof_profile_new(pipeline->names, root, true);
    pipeline->writer = writer;
    if (writer)
        pipeline->recorder = uprof_record_new(guest, writer);
    pipeline->mem =
        uprof_mem_new(pipeline->recorder ? pipeline->recorder : guest, UPROF_LANE_WORKER);
    pipeline->stack = g_new0(UprofStack, 1);
    return pipeline;
}

void
uprof_pipeline_free(UprofPipeline *pipeline)
{
    if (!pipeline)
        return;
    uprof_mem_free(pipeline->mem);
    uprof_guest_close(pipeline->recorder);
    uprof_profile_free(pipeline->profile);
    uprof_sym_free(pipeline->sym);
    uprof_names_free(pipeline->names);
    g_free(pipeline->stack);
    g_mutex_clear(&pipeline->lock);
    g_free(pipeline);
}

bool
uprof_pipeline_begin(UprofPipeline *pipeline, GError **error)
{
    if (pipeline->writer && !uprof_writer_run(pipeline->writer, pipeline->run, error))
        return false;
    g_ptr_array_set_size(pipeline->run->images, 0);
    for (unsigned i = 0; i < uprof_sym_n_sources(pipeline->sym); i++) {
        UprofSymSource source;
        uprof_sym_source(pipeline->sym, i, &source);
        const UprofRunImage *image = uprof_run_add_image(pipeline->run, source.label, source.path,
                                                         source.build_id, source.digest);
        if (pipeline->writer && !uprof_writer_image(pipeline->writer, image, error))
            return false;
    }
    return true;
}

void
uprof_pipeline_end(UprofPipeline *pipeline)
{
    for (unsigned i = 0; i < uprof_sym_n_sources(pipeline->sym); i++) {
        UprofSymSource source;
        uprof_sym_source(pipeline->sym, i, &source);
        UprofRunImage *image = g_ptr_array_index(pipeline->run->images, i);
        image->checked = source.match != UPROF_SYM_UNCHECKED;
        image->matched = source.match == UPROF_SYM_MATCHED;
    }
}

static void
push_frame(UprofPipeline *pipeline, const UprofName *name)
{
    pipeline->frames[pipeline->n_frames++] = name;
}

static void
push_marker(UprofPipeline *pipeline, const char *marker)
{
    push_frame(pipeline, uprof_names_marker(pipeline->names, marker));
}

/*
 * Root first; neighbors in no known image become one. Returns: frames with a name
 * of their own; @n_inside: those in a known image
 */
static unsigned
name_frames(UprofPipeline *pipeline, const UprofStack *stack, unsigned *n_inside)
{
    const bool has_sources = uprof_sym_n_sources(pipeline->sym) > 0;
    bool was_unknown = false;
    unsigned n_named = 0;

    for (unsigned i = stack->n; i-- > 0;) {
        const UprofFrame *frame = &stack->frames[i];
        const UprofSymAnswer answer = uprof_sym_find(pipeline->sym, frame->pc, frame->is_return);
        const bool is_unknown = has_sources && answer.kind == UPROF_SYM_OUTSIDE;
        if (!(is_unknown && was_unknown))
            push_frame(pipeline, answer.name);
        was_unknown = is_unknown;
        n_named += answer.kind == UPROF_SYM_NAMED;
        *n_inside += answer.kind != UPROF_SYM_OUTSIDE;
    }
    return n_named;
}

/* How much of the first window the stack took. */
static void
learn_window(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    const UprofStack *stack = pipeline->stack;
    if (!pipeline->sizes || snapshot->n_windows == 0 || snapshot->stale)
        return;
    const uint64_t start = snapshot->windows[0].gva;
    const uint64_t used = stack->top_sp > start ? stack->top_sp - start : 0;
    uprof_window_size_learn(&pipeline->sizes[snapshot->vcpu], stack->end == UPROF_END_WINDOW, used);
}

static void
count_stack(UprofPipeline *pipeline, unsigned n_named, unsigned n_inside)
{
    const UprofStack *stack = pipeline->stack;
    UprofRun *run = pipeline->run;
    const bool has_sources = uprof_sym_n_sources(pipeline->sym) > 0;

    run->running++;
    if (has_sources && n_inside == 0)
        run->unknown++;
    else if (uprof_unwind_is_complete(stack))
        run->complete++;
    else
        run->truncated++;
    run->frames += stack->n;
    run->named += n_named;
    run->one_frame += stack->n == 1;
    for (unsigned i = 0; i < stack->n; i++) {
        run->by_fp += stack->frames[i].how == UPROF_HOW_FP;
        run->by_cfi += stack->frames[i].how == UPROF_HOW_CFI;
        run->by_leaf += stack->frames[i].how == UPROF_HOW_LEAF;
    }
    pipeline->ends[stack->end]++;
}

/* One hold may have given several snapshots; it is counted once. */
static void
count_hold(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    UprofRun *run = pipeline->run;

    if (pipeline->any_hold && pipeline->last_hold == snapshot->hold)
        return;
    pipeline->any_hold = true;
    pipeline->last_hold = snapshot->hold;
    if (snapshot->hold_ns == 0)
        return;
    uprof_histogram_add(&run->hold, snapshot->hold_ns);
    uprof_histogram_add(&run->stopped, snapshot->stopped_ns);
}

static void
work(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    UprofRun *run = pipeline->run;
    const UprofUnwindContext context = {
        .snapshot = snapshot,
        .mem = pipeline->mem,
        .sym = pipeline->sym,
        .max_depth = (unsigned)CLAMP(run->max_depth, 1, UPROF_DEPTH_MAX),
    };
    char vcpu[32];
    unsigned n_named, n_inside = 0;

    uprof_mem_begin_sample(pipeline->mem, snapshot->time_ns, snapshot->reset);
    pipeline->n_frames = 0;
    uprof_sym_check(pipeline->sym, pipeline->mem, snapshot->vcpu, &snapshot->regs,
                    snapshot->regs.pc);
    pipeline->is_idle = snapshot->idle || uprof_unwind_is_idle(&context);
    if (run->per_vcpu) {
        g_snprintf(vcpu, sizeof(vcpu), "vcpu%u", snapshot->vcpu);
        push_marker(pipeline, vcpu);
    }
    if (pipeline->is_idle) {
        run->idles++;
        push_marker(pipeline, "[idle]");
        if (run->idle)
            uprof_profile_add(pipeline->profile, pipeline->frames, pipeline->n_frames,
                              snapshot->weight);
        return;
    }
    run->torn += snapshot->stale;
    uprof_unwind(&context, pipeline->stack);
    learn_window(pipeline, snapshot);
    if (!uprof_unwind_is_complete(pipeline->stack))
        push_marker(pipeline, "[truncated]");
    n_named = name_frames(pipeline, pipeline->stack, &n_inside);
    count_stack(pipeline, n_named, n_inside);
    uprof_profile_add(pipeline->profile, pipeline->frames, pipeline->n_frames, snapshot->weight);
}

bool
uprof_pipeline_take(UprofPipeline *pipeline, const UprofSnapshot *snapshot, GError **error)
{
    bool ok = true;

    if (snapshot->vcpu >= pipeline->run->vcpus)
        return true; /* a forged capture */
    if (pipeline->writer)
        ok = uprof_writer_snapshot(pipeline->writer, snapshot, error);
    g_mutex_lock(&pipeline->lock);
    pipeline->run->samples++;
    count_hold(pipeline, snapshot);
    work(pipeline, snapshot);
    g_mutex_unlock(&pipeline->lock);
    if (ok && pipeline->recorder && uprof_record_error(pipeline->recorder)) {
        if (error)
            *error = g_error_copy(uprof_record_error(pipeline->recorder));
        ok = false;
    }
    return ok;
}
