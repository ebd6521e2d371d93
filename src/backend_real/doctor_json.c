/* The doctor's facts as JSON; see doctor.h. Unknown is null; a limit that there is not, "unlimited". */
#include <math.h>

#include "backend_real/doctor_parts.h"
#include "backend_real/nic_choose.h"
#include "backend_real/pci_map.h"

static void text_at(struct json_writer *json, const char *key, const char *text)
{
  json_string_at(json, key, text && *text ? text : NULL);
}

static void known_at(struct json_writer *json, const char *key, int64_t value, gboolean known)
{
  json_key(json, key);
  if (known)
    json_integer(json, (uint64_t)value);
  else
    json_string(json, NULL);
}

static void limit_value(struct json_writer *json, const char *key, uint64_t value)
{
  json_key(json, key);
  if (value == DOCTOR_UNLIMITED)
    json_string(json, "unlimited");
  else
    json_integer(json, value);
}

/* --- the machine
 * -------------------------------------------------------------------------------------------------*/

static void write_limit(struct json_writer *json, const char *key, const struct doctor_limit *limit)
{
  json_key(json, key);
  if (!limit->known) {
    json_string(json, NULL);
    return;
  }
  json_object_open(json);
  limit_value(json, "soft", limit->soft);
  limit_value(json, "hard", limit->hard);
  json_object_close(json);
}

static void write_nodes(struct json_writer *json, GArray *nodes)
{
  json_array_at(json, "numa_nodes");
  for (guint i = 0; i < nodes->len; i++) {
    const struct doctor_node *node = &g_array_index(nodes, struct doctor_node, i);
    json_object_open(json);
    json_integer_at(json, "node", node->id);
    text_at(json, "processors", node->processors);
    known_at(json, "bytes", (int64_t)node->bytes, node->bytes > 0);
    known_at(json, "free_bytes", (int64_t)node->free_bytes, node->bytes > 0);
    json_object_close(json);
  }
  json_array_close(json);
}

static void write_pages(struct json_writer *json, const struct doctor_host *host)
{
  json_array_at(json, "huge_pages");
  for (guint i = 0; i < host->pools->len; i++) {
    const struct doctor_pool *pool = &g_array_index(host->pools, struct doctor_pool, i);
    json_object_open(json);
    json_integer_at(json, "page_bytes", pool->page_bytes);
    json_integer_at(json, "pages", pool->pages);
    json_integer_at(json, "free_pages", pool->free_pages);
    json_object_close(json);
  }
  json_array_close(json);
  text_at(json, "transparent_huge_pages", host->transparent);
}

static void write_host(struct json_writer *json, const struct doctor_host *host)
{
  json_object_at(json, "machine");
  text_at(json, "kernel", host->kernel);
  text_at(json, "processor", host->processor);
  text_at(json, "processors_online", host->online);
  text_at(json, "processors_allowed", host->allowed);
  known_at(json, "memory_bytes", (int64_t)host->bytes, host->bytes > 0);
  known_at(json, "memory_available_bytes", (int64_t)host->available, host->bytes > 0);
  limit_value(json, "memory_max_bytes", host->bytes_max);
  write_nodes(json, host->nodes);
  write_pages(json, host);
  write_limit(json, "locked_memory_bytes", &host->memlock);
  json_boolean_at(json, "cap_ipc_lock", host->ipc_lock);
  write_limit(json, "open_files", &host->files);
  text_at(json, "iommu", host->iommu);
  json_object_close(json);
}

/* --- GPUs
 * --------------------------------------------------------------------------------------------------------*/

static void write_gpu(struct json_writer *json, const struct gpu_facts *gpu)
{
  json_object_open(json);
  known_at(json, "ordinal", gpu->ordinal, gpu->ordinal >= 0);
  text_at(json, "name", gpu->name);
  known_at(json, "memory_bytes", (int64_t)gpu->bytes, gpu->bytes > 0);
  text_at(json, "pci", gpu->pci);
  known_at(json, "numa_node", gpu->numa, gpu->numa >= 0);
  text_at(json, "driver", gpu->driver);
  json_key(json, "dma_buf");
  if (gpu->dmabuf == GPU_EXPORT_UNKNOWN)
    json_string(json, NULL);
  else
    json_boolean(json, gpu->dmabuf == GPU_EXPORT_YES);
  text_at(json, "dma_buf_why_not", gpu->dmabuf_why);
  json_object_close(json);
}

static void write_gpus(struct json_writer *json, const struct doctor_gpus *gpus)
{
  json_object_at(json, "gpus");
  text_at(json, "cuda_missing", gpus->cuda_missing);
  text_at(json, "cuda", gpus->cuda);
  text_at(json, "driver", gpus->driver);
  json_boolean_at(json, "peer_memory_module", gpus->peer_memory);
  json_array_at(json, "list");
  for (guint i = 0; i < gpus->list->len; i++)
    write_gpu(json, gpus->list->pdata[i]);
  json_array_close(json);
  json_object_close(json);
}

/* --- RDMA
 * --------------------------------------------------------------------------------------------------------*/

static void write_gids(struct json_writer *json, const struct nic *nic)
{
  json_array_at(json, "gids");
  for (guint i = 0; i < nic->gids->len; i++) {
    const struct nic_gid *gid = &g_array_index(nic->gids, struct nic_gid, i);
    char address[46];
    nic_gid_text(gid, address);
    json_object_open(json);
    json_integer_at(json, "index", gid->index);
    text_at(json, "type", gid->type);
    text_at(json, "address", address);
    json_object_close(json);
  }
  json_array_close(json);
}

static void write_nic(struct json_writer *json, const struct nic *nic)
{
  json_object_open(json);
  text_at(json, "device", nic->device);
  json_integer_at(json, "port", nic->port);
  text_at(json, "link", nic->kind == NIC_SRD ? "EFA" : nic->ethernet ? "RoCE" : "InfiniBand");
  text_at(json, "state", nic->state);
  json_boolean_at(json, "active", nic->active);
  json_real_at(json, "gbit_s", nic->gbit_s > 0 ? nic->gbit_s : NAN);
  json_integer_at(json, "mtu", nic->mtu);
  text_at(json, "netdev", nic->netdev);
  text_at(json, "pci", nic->pci);
  known_at(json, "numa_node", nic->numa, nic->numa >= 0);
  json_integer_at(json, "lid", nic->lid);
  json_integer_at(json, "reads_asked", nic->reads_asked);
  json_integer_at(json, "reads_served", nic->reads_served);
  json_integer_at(json, "region_max_bytes", nic->region_max);
  json_integer_at(json, "regions_max", nic->regions_max);
  json_boolean_at(json, "dma_buf", nic->dmabuf);
  json_boolean_at(json, "rdma_read", nic->kind == NIC_RC || nic->srd_reads);
  known_at(json, "srd_read_max_bytes", nic->srd_read_max, nic->kind == NIC_SRD);
  write_gids(json, nic);
  json_object_close(json);
}

static void write_rdma(struct json_writer *json, const struct doctor *d)
{
  json_object_at(json, "rdma");
  json_boolean_at(json, "ib_uverbs_module", d->rdma.verbs_module);
  json_array_at(json, "ports");
  for (guint i = 0; i < d->nics->len; i++)
    write_nic(json, d->nics->pdata[i]);
  json_array_close(json);
  json_array_at(json, "unusable");
  for (guint i = 0; i < d->rdma.unusable->len; i++) {
    const struct doctor_unusable *unusable = d->rdma.unusable->pdata[i];
    json_object_open(json);
    text_at(json, "name", unusable->name);
    text_at(json, "why", unusable->why);
    text_at(json, "do", unusable->todo);
    json_object_close(json);
  }
  json_array_close(json);
  json_object_close(json);
}

static void write_distances(struct json_writer *json, const struct doctor *d)
{
  json_array_at(json, "distances");
  for (guint gpu = 0; gpu < d->gpus.list->len; gpu++)
    for (guint i = 0; i < d->nics->len; i++) {
      const struct gpu_facts *facts = d->gpus.list->pdata[gpu];
      const struct nic *nic = d->nics->pdata[i];
      json_object_open(json);
      text_at(json, "gpu_pci", facts->pci);
      known_at(json, "gpu", facts->ordinal, facts->ordinal >= 0);
      text_at(json, "device", nic->device);
      json_integer_at(json, "port", nic->port);
      text_at(json, "way", pci_distance_text(d->distance[gpu * d->nics->len + i]));
      json_object_close(json);
    }
  json_array_close(json);
}

/* --- what auto takes
 * ---------------------------------------------------------------------------------------------*/

static void write_kinds(struct json_writer *json, const char *key, GArray *kinds)
{
  const char *taken = NULL;
  for (guint i = kinds->len; i-- > 0;)
    if (!g_array_index(kinds, struct doctor_kind, i).missing)
      taken = g_array_index(kinds, struct doctor_kind, i).name;
  json_object_at(json, key);
  text_at(json, "auto", taken);
  json_array_at(json, "kinds");
  for (guint i = 0; i < kinds->len; i++) {
    const struct doctor_kind *kind = &g_array_index(kinds, struct doctor_kind, i);
    json_object_open(json);
    text_at(json, "name", kind->name);
    text_at(json, "missing", kind->missing);
    json_object_close(json);
  }
  json_array_close(json);
  json_object_close(json);
}

static void write_routes(struct json_writer *json, GPtrArray *routes)
{
  json_array_at(json, "routes");
  for (guint i = 0; i < routes->len; i++) {
    const struct doctor_route *route = routes->pdata[i];
    json_object_open(json);
    text_at(json, "local", *route->local ? route->local : "loopback");
    json_array_at(json, "chosen");
    for (guint k = 0; k < route->chosen->len; k++) {
      const struct nic_choice *choice = &g_array_index(route->chosen, struct nic_choice, k);
      json_object_open(json);
      text_at(json, "device", choice->nic->device);
      json_integer_at(json, "port", choice->nic->port);
      json_integer_at(json, "gid", choice->gid.index);
      json_object_close(json);
    }
    json_array_close(json);
    json_object_close(json);
  }
  json_array_close(json);
}

static void write_advice(struct json_writer *json, GPtrArray *all)
{
  json_array_at(json, "advice");
  for (guint i = 0; i < all->len; i++) {
    const struct doctor_advice *advice = all->pdata[i];
    json_object_open(json);
    text_at(json, "about", advice->about);
    text_at(json, "finding", advice->finding);
    text_at(json, "do", advice->todo);
    json_object_close(json);
  }
  json_array_close(json);
}

void doctor_json(const struct doctor *doctor, struct json_writer *json)
{
  json_object_open(json);
  write_host(json, &doctor->host);
  write_gpus(json, &doctor->gpus);
  write_rdma(json, doctor);
  write_distances(json, doctor);
  write_kinds(json, "device", doctor->devices);
  write_kinds(json, "transport", doctor->transports);
  text_at(json, "gpudirect_missing", doctor->gpudirect_missing);
  write_routes(json, doctor->routes);
  write_advice(json, doctor->advice);
  json_object_close(json);
}
