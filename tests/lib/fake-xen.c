/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define __XEN_TOOLS__
#include "fake-xen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xen/xen.h>
#include <xen/domctl.h>
#include <xen/hvm/save.h>
#include <xen/vcpu.h>
#include <xencall.h>
#include <xenforeignmemory.h>
#include <xenstore.h>

FakeXen fake_xen;

struct xencall_handle {
    int unused;
};

struct xenforeignmemory_handle {
    int unused;
};

static struct xencall_handle the_calls;
static struct xenforeignmemory_handle the_memory;

xencall_handle *
xencall_open(struct xentoollog_logger *logger, unsigned flags)
{
    errno = fake_xen.open_errno;
    return fake_xen.open_errno ? NULL : &the_calls;
}

int
xencall_close(xencall_handle *handle)
{
    return 0;
}

void *
xencall_alloc_buffer_pages(xencall_handle *handle, size_t n)
{
    return calloc(n, FAKE_PAGE_BYTES);
}

void
xencall_free_buffer_pages(xencall_handle *handle, void *buffer, size_t n)
{
    free(buffer);
}

static void
give_info(xen_domctl_t *domctl)
{
    struct xen_domctl_getdomaininfo *info = &domctl->u.getdomaininfo;

    memset(info, 0, sizeof(*info));
    info->domain = (domid_t)(fake_xen.is_there ? fake_xen.domid : fake_xen.next_domid);
    info->flags = fake_xen.flags | (fake_xen.pauses > 0 ? XEN_DOMINF_paused : 0);
    info->tot_pages = fake_xen.tot_pages;
    for (unsigned i = 0; i < fake_xen.n_vcpus; i++)
        info->cpu_time += fake_xen.vcpus[i].time_ns;
    info->max_vcpu_id = fake_xen.n_vcpus - 1;
    memcpy(info->handle, fake_xen.uuid, sizeof(fake_xen.uuid));
}

static int
give_vcpu(xen_domctl_t *domctl)
{
    struct xen_domctl_getvcpuinfo *info = &domctl->u.getvcpuinfo;

    if (info->vcpu >= fake_xen.n_vcpus)
        return EINVAL;
    const FakeVcpu *vcpu = &fake_xen.vcpus[info->vcpu];
    info->online = vcpu->online;
    info->blocked = vcpu->blocked;
    info->cpu_time = vcpu->time_ns;
    return 0;
}

static int
give_context(xen_domctl_t *domctl)
{
    if (domctl->u.vcpucontext.vcpu >= fake_xen.n_vcpus)
        return EINVAL;
    const FakeVcpu *vcpu = &fake_xen.vcpus[domctl->u.vcpucontext.vcpu];
    if (vcpu->context_errno != 0)
        return vcpu->context_errno;
    memcpy(domctl->u.vcpucontext.ctxt.p, vcpu->context,
           fake_xen.address_bits == 32 ? 2800 : sizeof(vcpu->context));
    return 0;
}

/* Describes a vCPU that runs 64-bit code, with the control registers that its context has now. */
static int
give_hvm(xen_domctl_t *domctl)
{
    struct hvm_hw_cpu cpu = { .cs_sel = 0x18, .cs_arbytes = 0xa9b, .msr_efer = 0xd00 };

    if (domctl->u.hvmcontext_partial.type != HVM_SAVE_CODE(CPU) ||
        domctl->u.hvmcontext_partial.bufsz < sizeof(cpu) ||
        domctl->u.hvmcontext_partial.instance >= fake_xen.n_vcpus)
        return EINVAL;
    const FakeVcpu *vcpu = &fake_xen.vcpus[domctl->u.hvmcontext_partial.instance];
    if (vcpu->hvm_errno != 0)
        return vcpu->hvm_errno;
    memcpy(&cpu.cr0, vcpu->context + FAKE_CR0, sizeof(cpu.cr0));
    memcpy(&cpu.cr4, vcpu->context + FAKE_CR4, sizeof(cpu.cr4));
    memcpy(domctl->u.hvmcontext_partial.buffer.p, &cpu, sizeof(cpu));
    domctl->u.hvmcontext_partial.bufsz = sizeof(cpu);
    return 0;
}

static int
pause_domain(void)
{
    fake_xen.pauses++;
    fake_xen.n_pauses++;
    return 0;
}

static int
unpause_domain(void)
{
    if (fake_xen.pauses == 0)
        return EINVAL;
    fake_xen.pauses--;
    fake_xen.n_unpauses++;
    return 0;
}

/* Returns: 0 or an errno value */
static int
do_domctl(xen_domctl_t *domctl)
{
    fake_xen.n_domctls++;
    if (fake_xen.refused != 0)
        return fake_xen.refused;
    if (domctl->interface_version != fake_xen.version)
        return EACCES;
    if (fake_xen.n_domctls == fake_xen.fail_at)
        return fake_xen.fail_errno;
    const bool is_there = fake_xen.is_there && domctl->domain == fake_xen.domid;
    /* like Xen 4.17: if the domain does not exist, getdomaininfo describes the next domain */
    if (!is_there &&
        (domctl->cmd != XEN_DOMCTL_getdomaininfo || domctl->domain > fake_xen.next_domid))
        return ESRCH;
    switch (domctl->cmd) {
    case XEN_DOMCTL_pausedomain:
        return pause_domain();
    case XEN_DOMCTL_unpausedomain:
        return unpause_domain();
    case XEN_DOMCTL_getdomaininfo:
        give_info(domctl);
        return 0;
    case XEN_DOMCTL_getvcpuinfo:
        return give_vcpu(domctl);
    case XEN_DOMCTL_getvcpucontext:
        return give_context(domctl);
    case XEN_DOMCTL_gethvmcontext_partial:
        return give_hvm(domctl);
    case XEN_DOMCTL_get_address_size:
        domctl->u.address_size.size = fake_xen.address_bits;
        return 0;
    default:
        return ENOSYS;
    }
}

/* Answers for the caller's first vCPU. Only the sum of its times matters. */
static int
give_runstate(const multicall_entry_t *entry)
{
    vcpu_runstate_info_t *info = (vcpu_runstate_info_t *)(uintptr_t)entry->args[2];

    if (entry->args[0] != VCPUOP_get_runstate_info || entry->args[1] != 0)
        return ENOSYS;
    if (fake_xen.clock_errno != 0)
        return fake_xen.clock_errno;
    memset(info, 0, sizeof(*info));
    info->time[RUNSTATE_running] = fake_xen.clock_ns / 4;
    info->time[RUNSTATE_offline] = fake_xen.clock_ns - fake_xen.clock_ns / 4;
    return 0;
}

static int
do_entry(const multicall_entry_t *entry)
{
    switch (entry->op) {
    case __HYPERVISOR_domctl:
        fake_xen.clock_ns += FAKE_DOMCTL_NS;
        return do_domctl((xen_domctl_t *)(uintptr_t)entry->args[0]);
    case __HYPERVISOR_vcpu_op:
        return give_runstate(entry);
    default:
        return ENOSYS;
    }
}

int
xencall1(xencall_handle *handle, unsigned op, uint64_t first)
{
    fake_xen.n_calls++;
    errno = op == __HYPERVISOR_domctl ? do_domctl((xen_domctl_t *)(uintptr_t)first) : ENOSYS;
    return errno ? -1 : 0;
}

int
xencall2(xencall_handle *handle, unsigned op, uint64_t first, uint64_t second)
{
    multicall_entry_t *entries = (multicall_entry_t *)(uintptr_t)first;

    fake_xen.n_calls++;
    errno = op == __HYPERVISOR_multicall ? 0 : ENOSYS;
    for (uint64_t i = 0; errno == 0 && i < second; i++) {
        if ((int)i == fake_xen.stop_at) {
            errno = fake_xen.stop_errno;
            break;
        }
        const int number = do_entry(&entries[i]);
        errno = (int)i == fake_xen.fault_at ? EFAULT : 0;
        if (errno == 0)
            entries[i].result = (xen_ulong_t)-number;
    }
    return errno ? -1 : 0;
}

xenforeignmemory_handle *
xenforeignmemory_open(struct xentoollog_logger *logger, unsigned flags)
{
    return &the_memory;
}

int
xenforeignmemory_close(xenforeignmemory_handle *handle)
{
    return 0;
}

/* As with the real library, a page that cannot be mapped cannot be accessed. */
void *
xenforeignmemory_map(xenforeignmemory_handle *handle, uint32_t domid, int prot, size_t n,
                     const xen_pfn_t *frames, int *errors)
{
    if (!fake_xen.is_there || prot != PROT_READ || fake_xen.map_errno != 0) {
        errno = fake_xen.map_errno ? fake_xen.map_errno : ESRCH;
        return NULL;
    }
    uint8_t *pages =
        mmap(NULL, n * FAKE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < n; i++) {
        uint8_t *page = pages + i * FAKE_PAGE_BYTES;
        errors[i] = frames[i] < fake_xen.ram_pages ? -fake_xen.frame_errno : -EINVAL;
        if (errors[i] == 0)
            memcpy(page, fake_xen.ram + frames[i] * FAKE_PAGE_BYTES, FAKE_PAGE_BYTES);
        else
            mprotect(page, FAKE_PAGE_BYTES, PROT_NONE);
    }
    fake_xen.n_mapped++;
    fake_xen.n_maps++;
    return pages;
}

int
xenforeignmemory_unmap(xenforeignmemory_handle *handle, void *pages, size_t n)
{
    fake_xen.n_mapped--;
    return munmap(pages, n * FAKE_PAGE_BYTES);
}

struct xs_handle *
xs_open(unsigned long flags)
{
    return fake_xen.name ? (struct xs_handle *)&the_calls : NULL;
}

void
xs_close(struct xs_handle *handle)
{
}

void *
xs_read(struct xs_handle *handle, xs_transaction_t transaction, const char *path, unsigned *len)
{
    *len = (unsigned)strlen(fake_xen.name);
    return strdup(fake_xen.name);
}
