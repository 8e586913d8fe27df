/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host-priv.h"

#include "uprof/scan.h"
#include "uprof/text.h"
#include "uprof/word-distance.h"

#include <string.h>
#include <unistd.h>

struct _UprofHost {
    virConnectPtr connection;
    char *uri;
    char *shown; /* uri, safe to print */
    bool read_only;
};

/* clang-format off */
static const struct {
    int libvirt; /* virDomainState */
    UprofDomainState state;
    const char *name;
} states[] = {
    { VIR_DOMAIN_NOSTATE,     UPROF_DOMAIN_RUNNING, "running" }, /* libxl's state of idle domains */
    { VIR_DOMAIN_RUNNING,     UPROF_DOMAIN_RUNNING, "running" },
    { VIR_DOMAIN_BLOCKED,     UPROF_DOMAIN_RUNNING, "running" },
    { VIR_DOMAIN_PAUSED,      UPROF_DOMAIN_PAUSED,  "paused" },
    { VIR_DOMAIN_SHUTDOWN,    UPROF_DOMAIN_OTHER,   "in shutdown" },
    { VIR_DOMAIN_SHUTOFF,     UPROF_DOMAIN_SHUTOFF, "shut off" },
    { VIR_DOMAIN_CRASHED,     UPROF_DOMAIN_CRASHED, "crashed" },
    { VIR_DOMAIN_PMSUSPENDED, UPROF_DOMAIN_OTHER,   "suspended by its guest" },
};

static const struct {
    int libvirt; /* virErrorNumber */
    UprofErrorCode code;
} codes[] = {
    { VIR_ERR_NO_DOMAIN,         UPROF_ERROR_NOT_FOUND },
    { VIR_ERR_OPERATION_INVALID, UPROF_ERROR_NOT_FOUND },
    { VIR_ERR_OPERATION_DENIED,  UPROF_ERROR_DENIED },
    { VIR_ERR_ACCESS_DENIED,     UPROF_ERROR_DENIED },
    { VIR_ERR_AUTH_FAILED,       UPROF_ERROR_DENIED },
    { VIR_ERR_AUTH_CANCELLED,    UPROF_ERROR_DENIED },
    { VIR_ERR_AUTH_UNAVAILABLE,  UPROF_ERROR_DENIED },
    { VIR_ERR_NO_SUPPORT,        UPROF_ERROR_UNSUPPORTED },
};

/* Remote transports of libvirt. Only "+unix" stays on this host. */
static const char *const remote_transports[] = {
    "+ssh", "+tls", "+tcp", "+libssh", "+libssh2", "+ext",
};
/* clang-format on */

bool
uprof_host_fail(GError **error, const char *what)
{
    const virError *last = uprof_libvirt.GetLastError();
    UprofErrorCode code = UPROF_ERROR_FAILED;

    for (size_t i = 0; last && i < G_N_ELEMENTS(codes); i++)
        if (codes[i].libvirt == last->code)
            code = codes[i].code;
    g_autofree char *words = uprof_text_quote(last ? last->message : "libvirt gave no reason");
    g_set_error(error, UPROF_ERROR, (gint)code, "%s: %s", what, words);
    return false;
}

/* Returns: (transfer full): a word for a shell */
static char *
quote_uri(const char *uri)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._+-:/";
    g_autofree char *shown = uprof_text_quote(uri);

    return strspn(shown, plain) == strlen(shown) ? g_steal_pointer(&shown) : g_shell_quote(shown);
}

/* Is the daemon missing, or does it refuse the user? Other errors are about the URI. */
static bool
is_daemon_unreachable(const virError *error)
{
    static const int domains[] = {
        VIR_FROM_RPC, VIR_FROM_REMOTE, VIR_FROM_AUTH, VIR_FROM_POLKIT, VIR_FROM_ACCESS,
    };

    for (size_t i = 0; error && i < G_N_ELEMENTS(domains); i++)
        if (error->domain == domains[i])
            return true;
    return !error;
}

virConnectPtr
uprof_host_connect(const char *uri, bool read_only, GError **error)
{
    virConnectPtr connection;

    if (!uprof_libvirt_load(error))
        return NULL;
    connection = uprof_libvirt.ConnectOpenAuth(uri, *uprof_libvirt.default_auth,
                                               read_only ? VIR_CONNECT_RO : 0);
    if (connection)
        return connection;
    const char *asked = uri ? uri : g_getenv("LIBVIRT_DEFAULT_URI");
    g_autofree char *where = uprof_text_quote(asked ? asked : "libvirt's default");
    const virError *last = uprof_libvirt.GetLastError();
    g_autofree char *word = asked ? quote_uri(asked) : g_strdup("");
    g_autofree char *words = uprof_text_quote(last ? last->message : "libvirt gave no reason");
    if (asked && g_str_has_prefix(asked, "xen:"))
        g_set_error(
            error, UPROF_ERROR, UPROF_ERROR_DENIED,
            "no connection to '%s': %s (this needs root in Xen's dom0, a libvirt daemon, and "
            "the packages libvirt-daemon-driver-xen and virt-uprof-xen; try: virsh -c "
            "xen:///system list)",
            where, words);
    else if (!is_daemon_unreachable(last))
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED, "no connection to '%s': %s", where,
                    words);
    else
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED,
                    "no connection to '%s': %s (is its daemon running, and may you use it? "
                    "try: virsh%s%s list)",
                    where, words, asked ? " -c " : "", word);
    return NULL;
}

bool
uprof_host_uri_is_local(const char *uri)
{
    g_autofree char *scheme = NULL;
    g_autofree char *server = NULL;

    if (!g_uri_split(uri, G_URI_FLAGS_NONE, &scheme, NULL, &server, NULL, NULL, NULL, NULL, NULL))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(remote_transports); i++)
        if (g_str_has_suffix(scheme, remote_transports[i]))
            return false;
    return !server || !server[0];
}

UprofHost *
uprof_host_open(const char *uri, bool read_only, GError **error)
{
    virConnectPtr connection = uprof_host_connect(uri, read_only, error);

    if (!connection)
        return NULL;
    UprofHost *host = g_new0(UprofHost, 1);
    host->connection = connection;
    host->uri = uprof_libvirt.ConnectGetURI(connection);
    host->shown = uprof_text_quote(host->uri ? host->uri : "libvirt's default");
    host->read_only = read_only;
    return host;
}

void
uprof_host_close(UprofHost *host)
{
    if (!host)
        return;
    uprof_libvirt.ConnectClose(host->connection);
    free(host->uri);
    g_free(host->shown);
    g_free(host);
}

const char *
uprof_host_uri_hint(const char *uri)
{
    return g_str_has_suffix(uri, ":///session")
               ? "; root's domains: sudo virt-uprof list, or -c qemu:///system"
               : "";
}

char *
uprof_host_virsh(const char *uri)
{
    static const char *const variables[] = { "VIRSH_DEFAULT_CONNECT_URI", "LIBVIRT_DEFAULT_URI" };
    const char *usual = geteuid() == 0 ? "qemu:///system" : "qemu:///session";

    for (size_t i = G_N_ELEMENTS(variables); i > 0; i--)
        if (g_getenv(variables[i - 1]))
            usual = g_getenv(variables[i - 1]);
    g_autofree char *word = quote_uri(uri);
    return strcmp(uri, usual) == 0 ? g_strdup("virsh") : g_strdup_printf("virsh -c %s", word);
}

const char *
uprof_host_uri(const UprofHost *host)
{
    return host->shown;
}

char *
uprof_host_describe(const UprofHost *host)
{
    unsigned long version = 0;

    uprof_libvirt.ConnectGetLibVersion(host->connection, &version);
    return g_strdup_printf("libvirt %lu.%lu.%lu, %s", version / 1000000, version / 1000 % 1000,
                           version % 1000, host->read_only ? "read-only" : "read-write");
}

virConnectPtr
uprof_host_connection(const UprofHost *host)
{
    return host->connection;
}

void
uprof_domain_free(UprofDomain *domain)
{
    if (!domain)
        return;
    g_free(domain->name);
    g_free(domain->uri);
    g_free(domain->driver);
    uprof_domain_xml_free(domain->xml);
    g_free(domain->bad_xml);
    g_free(domain->kernel_problem);
    g_free(domain);
}

bool
uprof_domain_has_memory(const UprofDomain *domain)
{
    return domain->state == UPROF_DOMAIN_RUNNING || domain->state == UPROF_DOMAIN_PAUSED ||
           domain->state == UPROF_DOMAIN_CRASHED;
}

/* Returns: (transfer full): with the members that need no call to the daemon */
static UprofDomain *
name_domain(UprofHost *host, virDomainPtr vir)
{
    UprofDomain *domain = g_new0(UprofDomain, 1);
    const char *driver = uprof_libvirt.ConnectGetType(host->connection);
    const unsigned id = uprof_libvirt.DomainGetID(vir);

    domain->name = g_strdup(uprof_libvirt.DomainGetName(vir));
    domain->id = id == (unsigned)-1 ? -1 : (int)id;
    domain->uri = g_strdup(host->uri);
    domain->driver = g_strdup(driver ? driver : "?");
    domain->is_local = host->uri && uprof_host_uri_is_local(host->uri);
    domain->state = UPROF_DOMAIN_OTHER;
    domain->state_name = "in an unknown state";
    return domain;
}

/* Keeps the domain in the list, although nobody can sample it without its XML. */
static void
mark_unreadable(UprofDomain *domain, const char *why)
{
    domain->xml = g_new0(UprofDomainXml, 1);
    domain->xml->name = g_strdup(domain->name);
    domain->xml->uuid = g_strdup(domain->uuid);
    domain->xml->type = g_strdup("?");
    domain->xml->vcpus = domain->xml->vcpus_max = 1;
    uprof_metadata_init(&domain->xml->metadata);
    domain->bad_xml = g_strdup(why);
}

/* Returns: false if libvirt does not describe the domain */
static bool
ask_for_domain(UprofDomain *domain, virDomainPtr vir, GError **error)
{
    int state = VIR_DOMAIN_NOSTATE;

    if (uprof_libvirt.DomainGetUUIDString(vir, domain->uuid) < 0 ||
        uprof_libvirt.DomainGetState(vir, &state, NULL, 0) < 0)
        return uprof_host_fail(error, "cannot ask for the state of a domain");
    for (size_t i = 0; i < G_N_ELEMENTS(states); i++) {
        if (states[i].libvirt != state)
            continue;
        domain->state = states[i].state;
        domain->state_name = states[i].name;
    }
    char *xml = uprof_libvirt.DomainGetXMLDesc(vir, 0);
    if (!xml)
        return uprof_host_fail(error, "cannot read the XML of a domain");
    g_autoptr(GError) bad = NULL;
    domain->xml = uprof_domain_xml_parse((UprofSlice){ xml, strlen(xml) }, &bad);
    free(xml);
    if (!domain->xml)
        mark_unreadable(domain, bad->message);
    return true;
}

static UprofDomain *
describe_domain(UprofHost *host, virDomainPtr vir, GError **error)
{
    g_autoptr(UprofDomain) domain = name_domain(host, vir);

    return ask_for_domain(domain, vir, error) ? g_steal_pointer(&domain) : NULL;
}

/* Returns: false if the connection is lost */
static bool
add_domain(UprofHost *host, virDomainPtr vir, GPtrArray *domains, GError **error)
{
    g_autoptr(UprofDomain) domain = name_domain(host, vir);
    g_autoptr(GError) failure = NULL;

    if (!ask_for_domain(domain, vir, &failure)) {
        const virError *last = uprof_libvirt.GetLastError();
        if (last && last->code == VIR_ERR_NO_DOMAIN)
            return true; /* the domain has ended meanwhile */
        if (uprof_libvirt.ConnectIsAlive(host->connection) != 1) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        mark_unreadable(domain, failure->message);
    }
    g_ptr_array_add(domains, g_steal_pointer(&domain));
    return true;
}

static int
compare_domains(gconstpointer a, gconstpointer b)
{
    const UprofDomain *const *one = a;
    const UprofDomain *const *other = b;

    return strcmp((*one)->name, (*other)->name);
}

GPtrArray *
uprof_host_list(UprofHost *host, GError **error)
{
    virDomainPtr *all = NULL;
    const int n = uprof_libvirt.ConnectListAllDomains(host->connection, &all, 0);

    if (n < 0) {
        uprof_host_fail(error, "cannot list domains");
        return NULL;
    }
    g_autoptr(GPtrArray) domains =
        g_ptr_array_new_with_free_func((GDestroyNotify)uprof_domain_free);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        ok = ok && add_domain(host, all[i], domains, error);
        uprof_libvirt.DomainFree(all[i]);
    }
    free(all);
    if (!ok)
        return NULL;
    g_ptr_array_sort(domains, compare_domains);
    return g_steal_pointer(&domains);
}

GPtrArray *
uprof_host_names(UprofHost *host, GError **error)
{
    virDomainPtr *all = NULL;
    const int n = uprof_libvirt.ConnectListAllDomains(host->connection, &all, 0);

    if (n < 0) {
        uprof_host_fail(error, "cannot list domains");
        return NULL;
    }
    GPtrArray *domains = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_domain_free);
    for (int i = 0; i < n; i++) {
        UprofDomain *domain = g_new0(UprofDomain, 1);
        const unsigned id = uprof_libvirt.DomainGetID(all[i]);
        domain->name = g_strdup(uprof_libvirt.DomainGetName(all[i]));
        domain->id = id == (unsigned)-1 ? -1 : (int)id;
        uprof_libvirt.DomainGetUUIDString(all[i], domain->uuid);
        g_ptr_array_add(domains, domain);
        uprof_libvirt.DomainFree(all[i]);
    }
    free(all);
    g_ptr_array_sort(domains, compare_domains);
    return domains;
}

static bool
fail_to_find(UprofHost *host, const char *word, GError **error)
{
    g_autoptr(GPtrArray) domains = uprof_host_list(host, NULL);
    g_autofree char *quoted = uprof_text_quote(word);
    const UprofDomain *best = NULL;
    unsigned nearest = UPROF_WORD_FAR;

    for (guint i = 0; domains && i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        if (uprof_word_is_closer(word, domain->name, &nearest))
            best = domain;
    }
    if (best) {
        g_autofree char *meant = uprof_text_quote(best->name);
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "no domain '%s' on %s (did you mean '%s'?)", quoted, uprof_host_uri(host),
                    meant);
    } else {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "no domain '%s' on %s; to list them: virt-uprof list%s", quoted,
                    uprof_host_uri(host), uprof_host_uri_hint(uprof_host_uri(host)));
    }
    return false;
}

UprofDomain *
uprof_host_find(UprofHost *host, const char *word, GError **error)
{
    g_autoptr(UprofVirDomain) by_id = NULL;
    g_autoptr(UprofVirDomain) by_name = NULL;
    g_autoptr(UprofVirDomain) by_uuid = NULL;
    uint64_t id;

    if (uprof_slice_to_uint((UprofSlice){ word, strlen(word) }, 10, 0, G_MAXINT, &id))
        by_id = uprof_libvirt.DomainLookupByID(host->connection, (int)id);
    if (g_uuid_string_is_valid(word))
        by_uuid = uprof_libvirt.DomainLookupByUUIDString(host->connection, word);
    by_name = uprof_libvirt.DomainLookupByName(host->connection, word);

    if (by_id && by_name) {
        char one[VIR_UUID_STRING_BUFLEN] = "", other[VIR_UUID_STRING_BUFLEN] = "";
        uprof_libvirt.DomainGetUUIDString(by_id, one);
        uprof_libvirt.DomainGetUUIDString(by_name, other);
        if (strcmp(one, other) != 0) {
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                        "'%s' is the id of one domain and the name of another; "
                        "give the UUID instead: %s (id) or %s (name)",
                        word, one, other);
            return NULL;
        }
    }
    virDomainPtr found = by_id ? by_id : by_uuid ? by_uuid : by_name;
    if (!found) {
        const virError *last = uprof_libvirt.GetLastError();
        if (last && last->code != VIR_ERR_NO_DOMAIN && last->code != VIR_ERR_OK)
            uprof_host_fail(error, "cannot look for a domain");
        else
            fail_to_find(host, word, error);
        return NULL;
    }
    return describe_domain(host, found, error);
}

GArray *
uprof_host_running(UprofHost *host)
{
    enum { SPARE = 16 }; /* domains may start between the two calls */
    const int n = uprof_libvirt.ConnectNumOfDomains(host->connection);

    if (n < 0)
        return NULL;
    GArray *ids = g_array_new(FALSE, TRUE, sizeof(int));
    g_array_set_size(ids, (guint)n + SPARE);
    const int found =
        uprof_libvirt.ConnectListDomains(host->connection, (int *)(void *)ids->data, n + SPARE);
    g_array_set_size(ids, (guint)MAX(found, 0));
    return ids;
}

UprofDomain *
uprof_host_find_id(UprofHost *host, int id, GError **error)
{
    g_autoptr(UprofVirDomain) vir = uprof_libvirt.DomainLookupByID(host->connection, id);

    if (!vir) {
        uprof_host_fail(error, "cannot look for a domain");
        return NULL;
    }
    return describe_domain(host, vir, error);
}

const char *
uprof_host_job(UprofHost *host, const UprofDomain *domain)
{
    virDomainJobInfo info = { .type = VIR_DOMAIN_JOB_NONE };
    g_autoptr(UprofVirDomain) vir =
        uprof_libvirt.DomainLookupByUUIDString(host->connection, domain->uuid);

    if (!vir || uprof_libvirt.DomainGetJobInfo(vir, &info) < 0 ||
        info.type == VIR_DOMAIN_JOB_NONE || info.type == VIR_DOMAIN_JOB_COMPLETED)
        return NULL;
    return "a libvirt job is active (migration, save, snapshot, dump or backup)";
}
