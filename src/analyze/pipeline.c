/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/pipeline.h"

#include "expand-inlined-priv.h"
#include "hot-places-priv.h"
#include "late-names-priv.h"
#include "python-merge-priv.h"

#include <string.h>

/* At the end, inlined functions add names: the limit of names is then this many times larger. */
enum { NAMES_AT_END = 4 };

UprofPipeline *
uprof_pipeline_new(UprofGuest *guest, UprofRun *run, UprofWriter *writer)
{
    UprofPipeline *pipeline = g_new0(UprofPipeline, 1);

    g_mutex_init(&pipeline->lock);
    pipeline->run = run;
    pipeline->names = uprof_names_new();
    uprof_names_limit(pipeline->names, UPROF_PROFILE_NAMES_MAX);
    pipeline->sym = uprof_sym_new(guest->arch, pipeline->names);
    pipeline->kernel = uprof_linux_new(pipeline->sym, guest->n_vcpus);
    pipeline->space = uprof_space_new(pipeline->kernel, pipeline->sym);
    pipeline->runtimes = uprof_runtimes_new(pipeline->space, pipeline->sym, pipeline->names);
    pipeline->cgroups = uprof_cgroups_new(pipeline->kernel);
    const UprofName *root =
        uprof_names_intern(pipeline->names, (UprofSlice){ run->domain, strlen(run->domain) });
    pipeline->profile = uprof_profile_new(pipeline->names, root, true);
    pipeline->writer = writer;
    if (writer)
        pipeline->recorder = uprof_recorder_new(guest, writer);
    pipeline->mem =
        uprof_mem_new(pipeline->recorder ? pipeline->recorder : guest, UPROF_LANE_WORKER);
    pipeline->stack = g_new0(UprofStack, 1);
    pipeline->python = g_new0(UprofPythonMerge, 1);
    pipeline->cache = uprof_unwind_cache_new();
    pipeline->lasts = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return pipeline;
}

void
uprof_pipeline_free(UprofPipeline *pipeline)
{
    if (!pipeline)
        return;
    uprof_mem_free(pipeline->mem);
    uprof_guest_close(pipeline->recorder);
    uprof_task_list_free(pipeline->tasks);
    uprof_profile_free(pipeline->profile);
    uprof_profile_free(pipeline->waits);
    uprof_runtimes_free(pipeline->runtimes);
    uprof_space_free(pipeline->space);
    uprof_cgroups_free(pipeline->cgroups);
    uprof_linux_free(pipeline->kernel);
    uprof_sym_free(pipeline->sym);
    uprof_names_free(pipeline->names);
    g_free(pipeline->stack);
    g_free(pipeline->python);
    uprof_unwind_cache_free(pipeline->cache);
    g_hash_table_unref(pipeline->lasts);
    g_mutex_clear(&pipeline->lock);
    g_free(pipeline);
}

void
uprof_pipeline_want_waits(UprofPipeline *pipeline)
{
    uprof_linux_want_tasks(pipeline->kernel);
    if (!pipeline->waits)
        pipeline->waits =
            uprof_profile_new(pipeline->names, uprof_profile_root(pipeline->profile), true);
}

void
uprof_pipeline_move(UprofPipeline *pipeline, UprofGuest *guest)
{
    g_mutex_lock(&pipeline->lock);
    uprof_mem_free(pipeline->mem);
    uprof_guest_close(pipeline->recorder);
    pipeline->recorder = pipeline->writer ? uprof_recorder_new(guest, pipeline->writer) : NULL;
    pipeline->mem =
        uprof_mem_new(pipeline->recorder ? pipeline->recorder : guest, UPROF_LANE_WORKER);
    pipeline->any_hold = false; /* the new guest numbers its holds from 0 again */
    g_mutex_unlock(&pipeline->lock);
}

/* The images of symbol files come first, in the order of the files. */
static void
forget_modules(UprofRun *run)
{
    for (guint i = run->images->len; i > 0; i--)
        if (((const UprofRunImage *)g_ptr_array_index(run->images, i - 1))->is_module)
            g_ptr_array_remove_index(run->images, i - 1);
}

bool
uprof_pipeline_begin(UprofPipeline *pipeline, GError **error)
{
    if (pipeline->writer && !uprof_writer_run(pipeline->writer, pipeline->run, error))
        return false;
    g_ptr_array_set_size(pipeline->run->images, 0);
    return uprof_pipeline_add_images(pipeline, error);
}

bool
uprof_pipeline_add_images(UprofPipeline *pipeline, GError **error)
{
    forget_modules(pipeline->run);
    for (unsigned i = pipeline->run->images->len; i < uprof_sym_n_sources(pipeline->sym); i++) {
        UprofSymSource source;
        uprof_sym_source(pipeline->sym, i, &source);
        UprofRunImage *image = uprof_run_add_image(pipeline->run, source.label, source.path,
                                                   source.build_id, source.digest);
        if (source.is_moved)
            image->base = g_strdup_printf("%" G_GINT64_MODIFIER "x", source.base);
        if (pipeline->writer && !uprof_writer_image(pipeline->writer, image, error))
            return false;
    }
    return true;
}

void
uprof_pipeline_keep_rules(UprofPipeline *pipeline, UprofRuleList *list)
{
    uprof_unwind_cache_keep(pipeline->cache, list, pipeline->sym);
}

GByteArray *
uprof_pipeline_pack_rules(const UprofPipeline *pipeline)
{
    return uprof_unwind_cache_pack(pipeline->cache, pipeline->sym);
}

const char *
uprof_pipeline_find_mismatch(const UprofPipeline *pipeline, unsigned n)
{
    for (unsigned i = 0; i < MIN(n, uprof_sym_n_sources(pipeline->sym)); i++) {
        UprofSymSource source;
        uprof_sym_source(pipeline->sym, i, &source);
        if (source.match == UPROF_SYM_MISMATCHED)
            return source.path;
    }
    return NULL;
}

const char *
uprof_pipeline_find_unseen(const UprofPipeline *pipeline, unsigned n)
{
    const char *path = NULL;

    for (unsigned i = MIN(n, uprof_sym_n_sources(pipeline->sym)); i-- > 0;) {
        UprofSymSource source;
        uprof_sym_source(pipeline->sym, i, &source);
        if (source.n_seen > 0 || source.match != UPROF_SYM_UNCHECKED)
            return NULL;
        path = source.path;
    }
    return path;
}

static void
push_frame(UprofPipeline *pipeline, const UprofName *name)
{
    g_assert(pipeline->n_frames < UPROF_PROFILE_DEPTH_MAX);
    pipeline->frames[pipeline->n_frames++] = name;
}

/*
 * Replaces the addresses in the stacks by functions. Then fewer stacks differ, and the profile has
 * room for the rest of the run.
 */
static void
coarsen_stacks(UprofPipeline *pipeline)
{
    pipeline->is_coarse = true;
    uprof_sym_coarsen(pipeline->sym);
    pipeline->profile = uprof_expand_inlined(pipeline->profile, pipeline->sym);
    if (pipeline->waits)
        pipeline->waits = uprof_expand_inlined(pipeline->waits, pipeline->sym);
}

static void
resolve_inlined(UprofPipeline *pipeline, unsigned time_ms)
{
    uint64_t n_named_waits = 0;

    uprof_names_limit(pipeline->names, (size_t)UPROF_PROFILE_NAMES_MAX * NAMES_AT_END);
    pipeline->profile =
        uprof_late_names_apply(pipeline->profile, pipeline->sym, &pipeline->run->named);
    pipeline->run->named = MIN(pipeline->run->named, pipeline->run->frames);
    if (pipeline->waits)
        pipeline->waits = uprof_late_names_apply(pipeline->waits, pipeline->sym, &n_named_waits);
    uprof_sym_resolve(pipeline->sym, time_ms);
    pipeline->profile = uprof_expand_inlined(pipeline->profile, pipeline->sym);
    if (pipeline->waits)
        pipeline->waits = uprof_expand_inlined(pipeline->waits, pipeline->sym);
}

UprofProfile *
uprof_pipeline_take_profile(UprofPipeline *pipeline)
{
    g_mutex_lock(&pipeline->lock);
    if (!pipeline->is_coarse)
        coarsen_stacks(pipeline);
    UprofProfile *profile = pipeline->profile;
    pipeline->profile = uprof_profile_new(pipeline->names, uprof_profile_root(profile), true);
    g_mutex_unlock(&pipeline->lock);
    return profile;
}

/* Notes the build-ids of modules in the run, so that `report` can name their addresses later. */
static void
note_modules(UprofPipeline *pipeline)
{
    UprofRun *run = pipeline->run;
    UprofSymModule module;

    forget_modules(run);
    for (unsigned i = 1; uprof_sym_module(pipeline->sym, i, &module); i++) {
        if (run->images->len >= UPROF_RUN_MODULES_MAX) {
            uprof_run_leave_module_out(run, module.label);
            continue;
        }
        UprofRunImage *image =
            uprof_run_add_image(run, module.label, module.path, module.build_id, NULL);
        image->is_module = true;
        image->guest_path = g_strdup(module.guest_path);
        image->is_from_memory = module.is_from_memory && module.n_symbols > 0;
        image->checked = image->matched = module.path != NULL || image->is_from_memory;
        image->n_seen = 1;
    }
}

static void
note_linux(UprofPipeline *pipeline)
{
    UprofRunLinux *kernel = &pipeline->run->kernel;
    UprofLinuxFacts facts;

    uprof_linux_facts(pipeline->kernel, &facts);
    g_free(kernel->release);
    kernel->release = g_strdup(facts.release);
    kernel->why = facts.why;
    kernel->symbols = facts.n_symbols;
    kernel->modules = facts.n_modules;
    kernel->rules = facts.n_rules;
    kernel->rules_version = facts.n_rules > 0 ? facts.rules_version : 0;
    kernel->has_types = facts.has_types;
    kernel->has_tasks = facts.has_tasks;
}

void
uprof_pipeline_note_facts(UprofPipeline *pipeline)
{
    note_linux(pipeline);
    for (unsigned i = 0; i < uprof_sym_n_sources(pipeline->sym); i++) {
        UprofSymSource source;
        uprof_sym_source(pipeline->sym, i, &source);
        UprofRunImage *image = g_ptr_array_index(pipeline->run->images, i);
        image->checked = source.match != UPROF_SYM_UNCHECKED;
        image->matched = source.match == UPROF_SYM_MATCHED;
        image->n_seen = source.n_seen;
        g_free(image->mismatch);
        image->mismatch = g_strdup(source.mismatch);
        g_free(image->lines_hint);
        image->lines_hint =
            g_strdup(pipeline->is_coarse && source.has_lines ? "there are too many different stacks"
                                                             : source.lines_hint);
    }
    note_modules(pipeline);
}

void
uprof_pipeline_end(UprofPipeline *pipeline, unsigned time_ms)
{
    resolve_inlined(pipeline, time_ms);
    uprof_pipeline_note_facts(pipeline);
}

static void
push_marker(UprofPipeline *pipeline, const char *marker)
{
    push_frame(pipeline, uprof_names_marker(pipeline->names, marker));
}

/*
 * Pushes the functions of Python that frame @i of @stack runs, the outermost first. If there is too
 * little room, the outermost ones are left out.
 */
static void
push_python(UprofPipeline *pipeline, unsigned i)
{
    const UprofPythonMerge *merge = pipeline->python;
    const unsigned room =
        UPROF_PROFILE_DEPTH_MAX - 1 - MIN(pipeline->n_frames + i + 1, UPROF_PROFILE_DEPTH_MAX - 1u);

    for (unsigned j = MIN(merge->count[i], room); j-- > 0;) {
        const UprofName *name = merge->frames[merge->first[i] + j].name;
        if (name)
            push_frame(pipeline, name);
        else
            push_marker(pipeline, "[unknown]");
    }
}

/*
 * Pushes the frames of @stack, root first. Neighboring frames outside all known images become
 * one frame. Functions of Python replace the frames of the interpreter.
 *
 * @has_python: functions of Python were found
 * @n_inside: (out): frames in a known image
 *
 * Returns: frames that have a name of their own, or are replaced
 */
static unsigned
name_frames(UprofPipeline *pipeline, const UprofStack *stack, bool has_python, unsigned *n_inside)
{
    const bool has_sources = uprof_sym_has_names(pipeline->sym);
    bool was_unknown = false;
    unsigned n_named = 0;

    *n_inside = 0;
    for (unsigned i = stack->n; i-- > 0;) {
        const UprofFrame *frame = &stack->frames[i];
        const UprofSymAnswer answer =
            uprof_sym_find(pipeline->sym, frame->symbol_address, frame->is_return);
        if (has_python &&
            uprof_python_merge_hides(pipeline->runtimes, pipeline->python, stack, i)) {
            if (pipeline->run->native)
                push_frame(pipeline, answer.site ? answer.site : answer.name);
            push_python(pipeline, i);
            n_named++;
            ++*n_inside;
            was_unknown = false;
            continue;
        }
        const bool is_unknown = has_sources && answer.kind == UPROF_SYM_OUTSIDE;
        if (!(is_unknown && was_unknown))
            push_frame(pipeline, answer.site ? answer.site : answer.name);
        if (is_unknown)
            uprof_linux_note_unknown(pipeline->kernel, frame->pc);
        was_unknown = is_unknown;
        n_named += answer.kind == UPROF_SYM_NAMED;
        *n_inside += answer.kind != UPROF_SYM_OUTSIDE;
    }
    return n_named;
}

/* Adapts the size of the window to the size of the stack. */
static void
learn_window(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    const UprofStack *stack = pipeline->stack;
    if (!pipeline->sizes || snapshot->n_windows == 0 || snapshot->stale)
        return;
    const UprofWindow *last = uprof_snapshot_window_at(snapshot, stack->top_sp - 1);
    const UprofWindow *window = last ? last : &snapshot->windows[0];
    const uint64_t start = window->gva;
    const uint64_t used = stack->top_sp > start ? stack->top_sp - start : 0;
    UprofWindowSize *size = &pipeline->sizes[snapshot->vcpu];
    /* the window was made before its size grew, or the mapping was shorter than the size */
    const bool was_short = window->len < (uint32_t)g_atomic_int_get(&size->wanted);
    uprof_window_size_learn(size, stack->end == UPROF_END_WINDOW && !was_short, used);
}

/* Returns: the counter in the run that counts this stack */
static uint64_t *
count_stack(UprofPipeline *pipeline, unsigned n_named, unsigned n_inside)
{
    const UprofStack *stack = pipeline->stack;
    UprofRun *run = pipeline->run;
    const bool has_sources = uprof_sym_has_names(pipeline->sym);
    uint64_t *tally = &run->truncated;

    if (has_sources && n_inside == 0)
        tally = &run->unknown;
    else if (uprof_unwind_is_complete(stack))
        tally = &run->complete;
    run->running++;
    ++*tally;
    run->frames += stack->n;
    run->named += n_named;
    run->one_frame += stack->n == 1;
    for (unsigned i = 0; i < stack->n; i++) {
        run->by_fp += stack->frames[i].how == UPROF_HOW_FP;
        run->by_orc += stack->frames[i].how == UPROF_HOW_ORC;
        run->by_cfi += stack->frames[i].how == UPROF_HOW_CFI;
        run->by_code += stack->frames[i].how == UPROF_HOW_CODE;
    }
    pipeline->ends[stack->end]++;
    return tally;
}

/*
 * Counts the kernel part and the user part of a stack separately. Kernel threads have no user
 * part. If the unwinder did not reach the user part, that part counts as incomplete.
 */
static void
count_parts(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    const UprofStack *stack = pipeline->stack;
    UprofRunLinux *kernel = &pipeline->run->kernel;
    UprofLinuxFacts facts;
    UprofLinuxTask task;

    uprof_linux_facts(pipeline->kernel, &facts);
    if (facts.state != UPROF_LINUX_FOUND)
        return;
    const bool has_user = stack->n > stack->n_kernel;
    kernel->kernel_stacks += stack->n_kernel > 0;
    kernel->kernel_complete += stack->has_whole_kernel;
    kernel->user_stacks +=
        has_user || (uprof_linux_task(pipeline->kernel, snapshot, &task) && task.memory != 0);
    kernel->user_complete += has_user && uprof_unwind_is_complete(stack);
}

static void
count_calls(UprofPipeline *pipeline, const UprofUnwindContext *context)
{
    unsigned n_checked, n_agreed;

    uprof_unwind_check_calls(context, pipeline->stack, &n_checked, &n_agreed);
    pipeline->run->calls_checked += n_checked;
    pipeline->run->calls_agreed += n_agreed;
}

/* Counts each hold once: one hold can give several snapshots. */
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
push_vcpu(UprofPipeline *pipeline, unsigned vcpu)
{
    char text[32];

    pipeline->n_frames = 0;
    pipeline->has_leaf = false;
    if (!pipeline->run->per_vcpu)
        return;
    g_snprintf(text, sizeof(text), "vcpu%u", vcpu);
    push_marker(pipeline, text);
}

/* Pushes a name that is not of a function. */
static void
push_text(UprofPipeline *pipeline, const char *text)
{
    const UprofName *name = uprof_names_intern(pipeline->names, (UprofSlice){ text, strlen(text) });

    uprof_name_add_module(name, NULL);
    push_frame(pipeline, name);
}

/* @label: (nullable) */
static void
push_cgroup(UprofPipeline *pipeline, const char *label)
{
    if (label)
        push_text(pipeline, label);
    else
        push_marker(pipeline, "[cgroup]");
}

/* Pushes "nginx", or "nginx-812". @name: %UPROF_LINUX_NAME_BYTES bytes */
static void
push_name(UprofPipeline *pipeline, const char *name, uint32_t process)
{
    char text[UPROF_LINUX_NAME_BYTES + 16];
    const int len = (int)strnlen(name, UPROF_LINUX_NAME_BYTES);

    if (pipeline->run->pids)
        g_snprintf(text, sizeof(text), "%.*s-%u", len, name, process);
    else
        g_snprintf(text, sizeof(text), "%.*s", len, name);
    push_text(pipeline, text);
}

/* Pushes the process that ran, if the guest is Linux. Its cgroup comes first if the user wants it.
 */
static void
push_process(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    UprofLinuxTask task;

    if (!*uprof_linux_links(pipeline->kernel))
        return;
    if (!uprof_linux_task(pipeline->kernel, snapshot, &task)) {
        push_marker(pipeline, "[unknown]");
        return;
    }
    if (pipeline->run->cgroups)
        push_cgroup(pipeline,
                    uprof_cgroups_find(pipeline->cgroups, pipeline->mem, snapshot, &task));
    push_name(pipeline, task.name, task.process);
}

static UprofPipelineLast *
find_last(UprofPipeline *pipeline, unsigned vcpu)
{
    UprofPipelineLast *last = g_hash_table_lookup(pipeline->lasts, GUINT_TO_POINTER(vcpu));

    if (!last) {
        last = g_new0(UprofPipelineLast, 1);
        g_hash_table_insert(pipeline->lasts, GUINT_TO_POINTER(vcpu), last);
    }
    return last;
}

/* Keeps the stack: later ticks count it again if the vCPU has not run since. */
static void
remember_stack(UprofPipeline *pipeline, const UprofSnapshot *snapshot, uint64_t *tally)
{
    UprofPipelineLast *last;

    if (snapshot->grain != UPROF_GRAIN_VCPU)
        return;
    last = find_last(pipeline, snapshot->vcpu);
    last->is_known = true;
    last->is_idle = pipeline->is_idle;
    last->tally = tally;
    last->has_leaf = pipeline->has_leaf;
    last->leaf = pipeline->leaf;
    last->n_frames = pipeline->n_frames;
    memcpy(last->frames, pipeline->frames, pipeline->n_frames * sizeof(pipeline->frames[0]));
}

/* Adds the pushed frames to the profile; @counts: as in uprof_profile_add_tick() */
static void
add_stack(UprofPipeline *pipeline, const UprofSnapshot *snapshot, bool counts)
{
    const UprofTick tick = {
        .time_ns = snapshot->time_ns,
        .vcpu = snapshot->vcpu,
        .count = snapshot->count,
        .weight = snapshot->weight,
    };

    uprof_profile_add_tick(pipeline->profile, pipeline->frames, pipeline->n_frames, tick, counts);
    if (pipeline->places && pipeline->has_leaf && !pipeline->is_idle)
        uprof_hot_places_add(pipeline->places, pipeline->sym, pipeline->leaf,
                             (uint64_t)tick.count * tick.weight);
}

static void
count_idle(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    pipeline->run->idles += snapshot->count;
    push_marker(pipeline, "[idle]");
    add_stack(pipeline, snapshot, pipeline->run->idle);
}

/*
 * Unwinds, and compares the images of all callers with the guest. If an image does not match, its
 * unwind rules are wrong, so the stack is unwound again without that image.
 */
static void
unwind_checked(UprofPipeline *pipeline, const UprofUnwindContext *context)
{
    const UprofSnapshot *snapshot = context->snapshot;
    const UprofStack *stack = pipeline->stack;
    const uint32_t epoch = uprof_sym_epoch(pipeline->sym);

    uprof_unwind(context, pipeline->stack);
    if (!uprof_sym_is_unchecked(pipeline->sym))
        return;
    for (unsigned i = 1; i < stack->n; i++)
        uprof_sym_check(pipeline->sym, pipeline->mem, snapshot->vcpu, &snapshot->regs,
                        stack->frames[i].pc - stack->frames[i].is_return, snapshot->reset);
    if (uprof_sym_epoch(pipeline->sym) != epoch)
        uprof_unwind(context, pipeline->stack);
}

static void
note_leaf(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    pipeline->has_leaf = pipeline->stack->n > 0;
    if (!pipeline->has_leaf)
        return;
    pipeline->leaf = pipeline->stack->frames[0].symbol_address;
    if (pipeline->places)
        uprof_hot_places_see(pipeline->places, pipeline->sym, snapshot,
                             &pipeline->stack->frames[0]);
}

/*
 * Pushes the functions of @stack. @may_be_python: the runtimes know its process
 * @n_inside: (out): as in name_frames(), which tells what is returned
 */
static unsigned
push_functions(UprofPipeline *pipeline, UprofStack *stack, bool may_be_python, unsigned *n_inside)
{
    const bool has_python =
        may_be_python &&
        uprof_python_merge_find(pipeline->runtimes, stack, uprof_sym_has_line_names(pipeline->sym),
                                pipeline->python);

    /* a stack whose outermost functions of Python are missing is not complete, either */
    if (has_python && pipeline->python->is_cut && uprof_unwind_is_complete(stack))
        stack->end = UPROF_END_WINDOW;
    if (!uprof_unwind_is_complete(stack))
        push_marker(pipeline, "[truncated]");
    return name_frames(pipeline, stack, has_python, n_inside);
}

/* Returns: (nullable): the counter in the run that counts this stack; %NULL if the vCPU idles */
static uint64_t *
push_stack(UprofPipeline *pipeline, const UprofUnwindContext *context)
{
    unsigned n_inside;

    unwind_checked(pipeline, context);
    note_leaf(pipeline, context->snapshot);
    learn_window(pipeline, context->snapshot);
    const unsigned n_named = push_functions(pipeline, pipeline->stack, true, &n_inside);
    if (pipeline->is_idle)
        return NULL;
    count_calls(pipeline, context);
    count_parts(pipeline, context->snapshot);
    return count_stack(pipeline, n_named, n_inside);
}

unsigned
uprof_pipeline_name_task(UprofPipeline *pipeline, const UprofTaskLabel *label, UprofStack *stack,
                         bool has_user, const UprofName *const **frames)
{
    unsigned n_inside;

    pipeline->n_frames = 0;
    if (pipeline->run->cgroups)
        push_cgroup(pipeline, label->cgroup);
    if (label->name[0])
        push_name(pipeline, label->name, label->process);
    else
        push_marker(pipeline, "[unknown]");
    if (stack && stack->n > 0)
        push_functions(pipeline, stack, has_user, &n_inside);
    else
        push_marker(pipeline, "[unknown]");
    *frames = pipeline->frames;
    return pipeline->n_frames;
}

/* The vCPU has not run since its last snapshot: counts the stack of that snapshot again. */
static void
count_same_stack(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    UprofRun *run = pipeline->run;
    const UprofPipelineLast *last = find_last(pipeline, snapshot->vcpu);

    pipeline->is_idle = snapshot->idle || (last->is_known && last->is_idle);
    push_vcpu(pipeline, snapshot->vcpu);
    if (last->is_known && (run->idle_stacks || !pipeline->is_idle)) {
        pipeline->n_frames = last->n_frames;
        memcpy(pipeline->frames, last->frames, last->n_frames * sizeof(last->frames[0]));
        pipeline->has_leaf = last->has_leaf;
        pipeline->leaf = last->leaf;
    } else if (!pipeline->is_idle) {
        push_marker(pipeline, "[unknown]");
    }
    if (pipeline->is_idle) {
        count_idle(pipeline, snapshot);
        return;
    }
    run->running += snapshot->count;
    *(last->is_known ? last->tally : &run->unknown) += snapshot->count;
    add_stack(pipeline, snapshot, true);
}

/*
 * The vCPU runs in system management mode or in a nested guest. The guest's page tables do not
 * describe the memory that it uses there.
 */
static void
count_outside_guest(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    UprofRun *run = pipeline->run;

    pipeline->is_idle = false;
    pipeline->stack->n = 0;
    push_vcpu(pipeline, snapshot->vcpu);
    push_marker(pipeline, "[unknown]");
    remember_stack(pipeline, snapshot, &run->unknown);
    run->running++;
    run->unknown++;
    add_stack(pipeline, snapshot, true);
}

static void
analyze_snapshot(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    UprofRun *run = pipeline->run;
    const UprofUnwindContext context = {
        .snapshot = snapshot,
        .mem = pipeline->mem,
        .sym = pipeline->sym,
        .cache = pipeline->cache,
        .space = pipeline->space,
        .runtimes = pipeline->runtimes,
        .method = uprof_unwind_method(run->unwind),
        .max_depth = (unsigned)CLAMP(run->max_depth, 1, UPROF_DEPTH_MAX),
    };
    uint64_t *tally = NULL;

    uprof_mem_begin_sample(pipeline->mem, snapshot->time_ns, snapshot->reset);
    if (snapshot->regs.smm) {
        count_outside_guest(pipeline, snapshot);
        return;
    }
    uprof_linux_update(pipeline->kernel, pipeline->mem, snapshot);
    uprof_space_begin(pipeline->space, pipeline->mem, snapshot);
    uprof_runtimes_begin(pipeline->runtimes, snapshot);
    uprof_sym_check(pipeline->sym, pipeline->mem, snapshot->vcpu, &snapshot->regs,
                    snapshot->regs.pc, snapshot->reset);
    pipeline->is_idle = snapshot->idle || uprof_unwind_is_idle(&context);
    push_vcpu(pipeline, snapshot->vcpu);
    run->torn += !pipeline->is_idle && snapshot->stale;
    if (!pipeline->is_idle || (run->idle_stacks && snapshot->regs.word_bytes > 0)) {
        push_process(pipeline, snapshot);
        tally = push_stack(pipeline, &context);
    }
    remember_stack(pipeline, snapshot, tally);
    if (pipeline->is_idle)
        count_idle(pipeline, snapshot);
    else
        add_stack(pipeline, snapshot, true);
}

/*
 * Finds the kernel of the guest, which takes long, and compares the symbol files with the guest,
 * before the first sample.
 */
static void
identify_guest(UprofPipeline *pipeline, const UprofSnapshot *snapshot)
{
    uprof_mem_begin_sample(pipeline->mem, snapshot->time_ns, snapshot->reset);
    uprof_sym_check(pipeline->sym, pipeline->mem, snapshot->vcpu, &snapshot->regs,
                    snapshot->regs.pc, snapshot->reset);
    uprof_linux_update(pipeline->kernel, pipeline->mem, snapshot);
}

bool
uprof_pipeline_take(UprofPipeline *pipeline, const UprofSnapshot *snapshot, GError **error)
{
    bool ok = true;

    if (snapshot->vcpu >= UPROF_VCPUS_MAX)
        return true; /* only a forged capture has such a vCPU */
    if (pipeline->writer)
        ok = uprof_writer_snapshot(pipeline->writer, snapshot, error);
    g_mutex_lock(&pipeline->lock);
    if (snapshot->is_prime) {
        identify_guest(pipeline, snapshot);
        g_mutex_unlock(&pipeline->lock);
        return ok;
    }
    pipeline->run->samples += snapshot->count;
    if (snapshot->same) {
        count_same_stack(pipeline, snapshot);
    } else {
        count_hold(pipeline, snapshot);
        analyze_snapshot(pipeline, snapshot);
    }
    if (!pipeline->is_coarse &&
        uprof_profile_n_stacks(pipeline->profile) >= UPROF_PROFILE_STACKS_MAX / 2)
        coarsen_stacks(pipeline);
    g_mutex_unlock(&pipeline->lock);
    if (ok && pipeline->recorder && uprof_recorder_error(pipeline->recorder)) {
        if (error)
            *error = g_error_copy(uprof_recorder_error(pipeline->recorder));
        ok = false;
    }
    return ok;
}
