/* The doctor's facts as tables; see doctor.h. */
#include <string.h>

#include "backend_real/doctor_cells.h"
#include "backend_real/doctor_parts.h"
#include "backend_real/nic_choose.h"
#include "harness/table.h"

/* Drivers that have no limit name the largest number they know. */
#define REGION_ANY (1ULL << 62)

/* --- the machine
 * -------------------------------------------------------------------------------------------------*/

static char *memory_text(const struct doctor_host *host)
{
  g_autofree char *all = gigabytes(host->bytes), *left = gigabytes(host->available);
  g_autofree char *most =
      host->bytes_max == DOCTOR_UNLIMITED
          ? g_strdup("")
          : g_strdup_printf("; this container: at most %.2f GB", (double)host->bytes_max / 1e9);
  return g_strdup_printf("%s GB, %s GB available%s", all, left, most);
}

static char *limit_text(const struct doctor_limit *limit, double unit, const char *name)
{
  if (!limit->known)
    return g_strdup("unknown");
  if (limit->soft == DOCTOR_UNLIMITED)
    return g_strdup("unlimited");
  g_autofree char *soft = g_strdup_printf("%.15g%s", (double)limit->soft / unit, name);
  if (limit->soft == limit->hard)
    return g_steal_pointer(&soft);
  if (limit->hard == DOCTOR_UNLIMITED)
    return g_strconcat(soft, " (may be raised)", NULL);
  return g_strdup_printf("%s (may be raised to %.15g%s)", soft, (double)limit->hard / unit, name);
}

static void print_machine(const struct doctor_host *host, FILE *out)
{
  g_autoptr(Table) table = table_new(3, 3);
  g_autofree char *memlock = limit_text(&host->memlock, 1e6, " MB");
  cells_pair(table, "kernel", g_strdup(or_dash(host->kernel)));
  cells_pair(table, "processors",
             g_strdup_printf("%s of %s, %s", or_dash(host->allowed), or_dash(host->online),
                             or_dash(host->processor)));
  cells_pair(table, "memory", memory_text(host));
  cells_pair(table, "transparent huge pages", g_strdup(or_dash(host->transparent)));
  cells_pair(table, "locked memory",
             g_strdup_printf(
                 "%s%s", memlock,
                 host->ipc_lock && host->memlock.soft != DOCTOR_UNLIMITED ? "; CAP_IPC_LOCK lifts it" : ""));
  cells_pair(table, "open files", limit_text(&host->files, 1, ""));
  cells_pair(table, "IOMMU", g_strdup(host->iommu ? host->iommu : "none"));
  fputs("machine\n", out);
  table_print(table, out, FALSE);
}

static void print_nodes(const struct doctor_host *host, FILE *out)
{
  if (host->nodes->len == 0)
    return;
  g_autoptr(Table) table = table_new(5, 3);
  cells_begin(table);
  cells_word(table, "node");
  cells_word(table, "processors");
  cells_end(table, "GB");
  cells_end(table, "GB free");
  for (guint i = 0; i < host->nodes->len; i++) {
    const struct doctor_node *node = &g_array_index(host->nodes, struct doctor_node, i);
    g_autofree char *all = gigabytes(node->bytes), *left = gigabytes(node->free_bytes);
    cells_begin(table);
    cells_word(table, "%u", node->id);
    cells_word(table, "%s", or_dash(node->processors));
    cells_end(table, "%s", all);
    cells_end(table, "%s", left);
  }
  fputs("\nNUMA nodes\n", out);
  table_print(table, out, FALSE);
}

static void print_pools(const struct doctor_host *host, FILE *out)
{
  if (host->pools->len == 0)
    return;
  g_autoptr(Table) table = table_new(4, 1);
  cells_begin(table);
  cells_end(table, "page");
  cells_end(table, "in the pool");
  cells_end(table, "free");
  for (guint i = 0; i < host->pools->len; i++) {
    const struct doctor_pool *pool = &g_array_index(host->pools, struct doctor_pool, i);
    cells_begin(table);
    if (pool->page_bytes >= 1U << 30)
      cells_end(table, "%.15g GiB", (double)pool->page_bytes / (1U << 30));
    else
      cells_end(table, "%.15g MiB", (double)pool->page_bytes / (1U << 20));
    cells_end(table, "%" G_GUINT64_FORMAT, pool->pages);
    cells_end(table, "%" G_GUINT64_FORMAT, pool->free_pages);
  }
  fputs("\nhuge pages\n", out);
  table_print(table, out, FALSE);
}

/* --- GPUs
 * --------------------------------------------------------------------------------------------------------*/

static void print_gpu(struct table *table, const struct gpu_facts *gpu)
{
  static const char *const dmabuf[] = {"unknown", "no", "yes"};
  g_autofree char *ordinal = number_or_dash(gpu->ordinal, gpu->ordinal >= 0);
  g_autofree char *numa = number_or_dash(gpu->numa, gpu->numa >= 0), *bytes = gigabytes(gpu->bytes);
  cells_begin(table);
  cells_word(table, "%s", ordinal);
  cells_word(table, "%s", or_dash(gpu->name));
  cells_word(table, "%s", bytes);
  cells_word(table, "%s", or_dash(gpu->pci));
  cells_word(table, "%s", numa);
  cells_word(table, "%s", or_dash(gpu->driver));
  cells_end(table, "%s%s%s%s", dmabuf[gpu->dmabuf], gpu->dmabuf_why ? " (" : "",
            gpu->dmabuf_why ? gpu->dmabuf_why : "", gpu->dmabuf_why ? ")" : "");
}

static void print_gpus(const struct doctor_gpus *gpus, FILE *out)
{
  static const char *const heads[] = {"GPU", "name", "GB", "PCI", "NUMA", "driver"};
  fputs("\nGPUs\n", out);
  g_autoptr(Table) about = table_new(3, 3);
  cells_pair(about, "CUDA",
             gpus->cuda_missing ? g_strdup_printf("none: %s", gpus->cuda_missing)
                                : g_strdup(or_dash(gpus->cuda)));
  if (gpus->driver)
    cells_pair(about, "driver", g_strdup(gpus->driver));
  if (gpus->list->len)
    cells_pair(about, "peer memory",
               g_strdup(gpus->peer_memory ? "nvidia_peermem is loaded (not used: dma-bufs are)"
                                          : "not loaded (not used: dma-bufs are)"));
  table_print(about, out, FALSE);
  if (gpus->list->len == 0)
    return;
  g_autoptr(Table) table = table_new(8, 8);
  cells_begin(table);
  for (size_t i = 0; i < G_N_ELEMENTS(heads); i++)
    cells_word(table, "%s", heads[i]);
  cells_end(table, "dma-buf");
  for (guint i = 0; i < gpus->list->len; i++)
    print_gpu(table, gpus->list->pdata[i]);
  table_print(table, out, FALSE);
}

/* --- RDMA
 * --------------------------------------------------------------------------------------------------------*/

static const char *link_text(const struct nic *nic)
{
  return nic->kind == NIC_SRD ? "EFA" : nic->ethernet ? "RoCE" : "InfiniBand";
}

/* What limits reads and registrations. */
static char *capability_text(const struct nic *nic)
{
  g_autofree char *most = gigabytes(nic->region_max);
  g_autofree char *region = nic->region_max >= REGION_ANY ? g_strdup("regions of any size")
                                                          : g_strdup_printf("regions up to %s GB", most);
  const char *dmabuf = nic->dmabuf ? "dma-buf" : "no dma-buf";
  if (nic->kind == NIC_RC)
    return g_strdup_printf("RC, %u reads asked, %u served, %s, %s", nic->reads_asked, nic->reads_served,
                           region, dmabuf);
  if (!nic->srd_reads)
    return g_strdup_printf("SRD without RDMA READ, %s, %s", region, dmabuf);
  return g_strdup_printf("SRD, RDMA READ up to %u bytes, %s, %s", nic->srd_read_max, region, dmabuf);
}

static void print_nic(struct table *table, const struct nic *nic)
{
  g_autofree char *numa = number_or_dash(nic->numa, nic->numa >= 0), *can = capability_text(nic);
  g_autofree char *rate = nic->gbit_s > 0 ? g_strdup_printf("%g", nic->gbit_s) : g_strdup("-");
  cells_begin(table);
  cells_word(table, "%s:%u", nic->device, nic->port);
  cells_word(table, "%s", link_text(nic));
  cells_word(table, "%s", nic->state);
  cells_word(table, "%s", rate);
  cells_word(table, "%u", nic->mtu);
  cells_word(table, "%s", or_dash(nic->netdev));
  cells_word(table, "%s", or_dash(nic->pci));
  cells_word(table, "%s", numa);
  cells_end(table, "%s", can);
}

static void print_gids(GPtrArray *nics, FILE *out)
{
  g_autoptr(Table) table = table_new(5, 5);
  cells_begin(table);
  cells_word(table, "port");
  cells_word(table, "GID");
  cells_word(table, "type");
  cells_end(table, "address");
  for (guint i = 0; i < nics->len; i++) {
    const struct nic *nic = nics->pdata[i];
    for (guint k = 0; k < nic->gids->len; k++) {
      const struct nic_gid *gid = &g_array_index(nic->gids, struct nic_gid, k);
      char address[46];
      nic_gid_text(gid, address);
      cells_begin(table);
      cells_word(table, "%s:%u", nic->device, nic->port);
      cells_word(table, "%u", gid->index);
      cells_word(table, "%s", gid->type);
      cells_end(table, "%s", address);
    }
  }
  table_print(table, out, FALSE);
}

static void print_unusable(const struct doctor_rdma *rdma, FILE *out)
{
  g_autoptr(Table) table = table_new(3, 3);
  for (guint i = 0; i < rdma->unusable->len; i++) {
    const struct doctor_unusable *unusable = rdma->unusable->pdata[i];
    cells_begin(table);
    cells_word(table, "%s", unusable->name);
    cells_end(table, "%s", unusable->why);
  }
  table_print(table, out, FALSE);
}

static void print_rdma(const struct doctor *d, FILE *out)
{
  static const char *const heads[] = {"port", "link", "state", "Gbit/s", "MTU", "netdev", "PCI", "NUMA"};
  fputs("\nRDMA devices\n", out);
  if (d->nics->len == 0)
    fputs("  none that can be used\n", out);
  if (d->nics->len) {
    g_autoptr(Table) table = table_new(10, 10);
    cells_begin(table);
    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++)
      cells_word(table, "%s", heads[i]);
    cells_end(table, "can");
    for (guint i = 0; i < d->nics->len; i++)
      print_nic(table, d->nics->pdata[i]);
    table_print(table, out, FALSE);
    print_gids(d->nics, out);
  }
  print_unusable(&d->rdma, out);
}

/* Those at that distance from the GPU, with commas; NULL: none. */
static char *nics_at(const struct doctor *d, guint gpu, enum pci_distance distance)
{
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint i = 0; i < d->nics->len; i++) {
    const struct nic *nic = d->nics->pdata[i];
    if (d->distance[gpu * d->nics->len + i] == distance)
      g_string_append_printf(text, "%s%s:%u", text->len ? ", " : "", nic->device, nic->port);
  }
  return text->len ? g_string_free(g_steal_pointer(&text), FALSE) : NULL;
}

static void print_ways(const struct doctor *d, guint gpu, struct table *table)
{
  const struct gpu_facts *facts = d->gpus.list->pdata[gpu];
  g_autofree char *ordinal = number_or_dash(facts->ordinal, facts->ordinal >= 0);
  for (enum pci_distance distance = PCI_SAME; distance <= PCI_UNKNOWN; distance++) {
    g_autofree char *nics = nics_at(d, gpu, distance);
    if (!nics)
      continue;
    cells_begin(table);
    cells_word(table, "GPU %s (%s)", ordinal, or_dash(facts->pci));
    cells_word(table, "%s", pci_distance_text(distance));
    cells_end(table, "%s", nics);
  }
}

static void print_distances(const struct doctor *d, FILE *out)
{
  if (d->nics->len == 0 || d->gpus.list->len == 0)
    return;
  g_autoptr(Table) table = table_new(4, 4);
  for (guint gpu = 0; gpu < d->gpus.list->len; gpu++)
    print_ways(d, gpu, table);
  fputs("\nways between GPUs and RDMA devices\n", out);
  table_print(table, out, FALSE);
}

/* --- what auto takes
 * ---------------------------------------------------------------------------------------------*/

static char *kinds_text(GArray *kinds)
{
  g_autoptr(GString) text = g_string_new(NULL);
  const char *taken = NULL;
  for (guint i = 0; i < kinds->len; i++) {
    const struct doctor_kind *kind = &g_array_index(kinds, struct doctor_kind, i);
    if (kind->missing)
      g_string_append_printf(text, "%s%s: %s", text->len ? "; " : "", kind->name, kind->missing);
    else if (!taken)
      taken = kind->name;
  }
  return g_strdup_printf("%s%s%s%s", taken ? taken : "none", text->len ? " (" : "", text->str,
                         text->len ? ")" : "");
}

static char *route_text(const struct doctor_route *route)
{
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint i = 0; i < route->chosen->len; i++) {
    const struct nic_choice *choice = &g_array_index(route->chosen, struct nic_choice, i);
    g_string_append_printf(text, "%s%s:%u GID %u", i ? ", " : "", choice->nic->device, choice->nic->port,
                           choice->gid.index);
  }
  return g_string_free(g_steal_pointer(&text), FALSE);
}

static void print_auto(const struct doctor *d, FILE *out)
{
  g_autoptr(Table) table = table_new(3, 3);
  cells_pair(table, "--device", kinds_text(d->devices));
  cells_pair(table, "--transport", kinds_text(d->transports));
  for (guint i = 0; i < d->routes->len; i++) {
    const struct doctor_route *route = d->routes->pdata[i];
    g_autofree char *from =
        *route->local ? g_strconcat("RDMA from ", route->local, NULL) : g_strdup("RDMA on loopback");
    cells_pair(table, from, route_text(route));
  }
  cells_pair(table, "gpudirect",
             d->gpudirect_missing ? g_strdup_printf("cannot be had: %s", d->gpudirect_missing)
                                  : g_strdup("can be had: [pipeline] path = gpudirect"));
  fputs("\nwhat auto takes here\n", out);
  table_print(table, out, FALSE);
}

static void print_advice(const struct doctor *d, FILE *out)
{
  fputs("\nwhat to do\n", out);
  if (d->advice->len == 0)
    fputs("  nothing: all that runs need is there\n", out);
  for (guint i = 0; i < d->advice->len; i++) {
    const struct doctor_advice *advice = d->advice->pdata[i];
    g_autofree char *finding = plain_text(g_strdup(advice->finding)),
                    *todo = plain_text(g_strdup(advice->todo));
    fprintf(out, "  %s: %s\n    -> %s\n", advice->about, finding, todo);
  }
}

void doctor_print(const struct doctor *doctor, FILE *out)
{
  print_machine(&doctor->host, out);
  print_nodes(&doctor->host, out);
  print_pools(&doctor->host, out);
  print_gpus(&doctor->gpus, out);
  print_rdma(doctor, out);
  print_distances(doctor, out);
  print_auto(doctor, out);
  print_advice(doctor, out);
}
