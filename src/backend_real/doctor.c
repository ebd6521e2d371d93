/* All facts together; see doctor.h. */
#include "backend_real/doctor.h"

#include <string.h>

#include "backend_real/device_kinds.h"
#include "backend_real/doctor_parts.h"
#include "backend_real/nic_choose.h"
#include "backend_real/nic_gid.h"
#include "backend_real/transport.h"

static void route_free(gpointer data)
{
  struct doctor_route *route = data;
  g_free(route->local);
  g_array_unref(route->chosen);
  g_free(route);
}

static void add_route(struct doctor *d, GArray *addresses, const char *local)
{
  const struct nic_ground ground = {.addresses = addresses};
  const struct nic_wish wish = {.local = *local ? local : NULL};
  GArray *chosen = nics_choose_on(&ground, d->nics, &wish, NULL);
  if (!chosen)
    return;
  struct doctor_route *route = g_new(struct doctor_route, 1);
  *route = (struct doctor_route){g_strdup(local), chosen};
  g_ptr_array_add(d->routes, route);
}

static gint compare_addresses(gconstpointer a, gconstpointer b)
{
  return memcmp(((const struct nic_address *)a)->raw, ((const struct nic_address *)b)->raw, 16);
}

/* By address: the kernel's order is that of its devices. */
static void add_routes(struct doctor *d, GArray *addresses)
{
  d->routes = g_ptr_array_new_with_free_func(route_free);
  g_array_sort(addresses, compare_addresses);
  add_route(d, addresses, "");
  for (guint i = 0; i < addresses->len; i++) {
    const struct nic_address *address = &g_array_index(addresses, struct nic_address, i);
    struct nic_gid gid = {0};
    char text[46];
    if (address_is_loopback(address->raw) || address_is_link_local(address->raw))
      continue;
    memcpy(gid.raw, address->raw, sizeof gid.raw);
    nic_gid_text(&gid, text);
    add_route(d, addresses, text);
  }
}

static void measure_distances(struct doctor *d, const struct pci_map *map)
{
  guint gpus = d->gpus.list->len, nics = d->nics->len;
  d->distance = g_new(enum pci_distance, (gsize)gpus * nics + 1);
  for (guint gpu = 0; gpu < gpus; gpu++)
    for (guint nic = 0; nic < nics; nic++)
      d->distance[gpu * nics + nic] =
          pci_map_distance(map, ((const struct gpu_facts *)d->gpus.list->pdata[gpu])->pci,
                           ((const struct nic *)d->nics->pdata[nic])->pci);
}

const char doctor_no_export[] = "no GPU's memory can be exported as a dma-buf";
const char doctor_no_register[] = "no RDMA device registers dma-bufs";

static gboolean some_gpu_exports(GPtrArray *gpus)
{
  for (guint i = 0; i < gpus->len; i++)
    if (((const struct gpu_facts *)gpus->pdata[i])->dmabuf == GPU_EXPORT_YES)
      return TRUE;
  return FALSE;
}

static gboolean some_nic_registers(GPtrArray *nics)
{
  for (guint i = 0; i < nics->len; i++)
    if (((const struct nic *)nics->pdata[i])->dmabuf)
      return TRUE;
  return FALSE;
}

static const char *gpudirect_missing(const struct doctor *d)
{
  if (d->gpus.cuda_missing)
    return "no GPU that CUDA can use";
  if (d->nics->len == 0)
    return "no RDMA device";
  if (!some_gpu_exports(d->gpus.list))
    return doctor_no_export;
  return some_nic_registers(d->nics) ? NULL : doctor_no_register;
}

static void list_kinds(struct doctor *d, const char *cuda_missing)
{
  d->transports = g_array_new(FALSE, FALSE, sizeof(struct doctor_kind));
  d->devices = g_array_new(FALSE, FALSE, sizeof(struct doctor_kind));
  for (const struct transport_ops *const *t = transports(); *t; t++) {
    struct doctor_kind kind = {(*t)->name, (*t)->missing()};
    g_array_append_val(d->transports, kind);
  }
  for (const struct device_ops *const *device = devices(); *device; device++) {
    struct doctor_kind kind = {(*device)->name,
                               *device == &device_cuda ? cuda_missing : (*device)->missing()};
    g_array_append_val(d->devices, kind);
  }
}

struct doctor *doctor_new(const struct doctor_sources *sources)
{
  struct doctor *d = g_new0(struct doctor, 1);
  d->nics = g_ptr_array_ref(sources->nics);
  doctor_host_read(&d->host, sources->root);
  doctor_gpus_read(&d->gpus, sources);
  doctor_rdma_read(&d->rdma, sources);
  d->gpudirect_missing = gpudirect_missing(d);
  d->slow_links = doctor_slow_links(sources->root, d);
  measure_distances(d, sources->map);
  add_routes(d, sources->addresses);
  list_kinds(d, sources->cuda_missing);
  doctor_advise(d);
  return d;
}

struct doctor *doctor_new_here(void)
{
  g_autoptr(GPtrArray) nics = nics_list();
  g_autoptr(GArray) addresses = nic_addresses();
  const char *cuda_missing = device_cuda.missing();
  g_autoptr(GPtrArray) gpus = cuda_facts();
  g_autofree char *cuda = cuda_driver_version();
  const struct doctor_sources sources = {
      .root = "",
      .nics = nics,
      .addresses = addresses,
      .gpus = gpus,
      .cuda_missing = cuda_missing,
      .cuda_version = cuda,
      .map = pci_map_here(),
  };
  return doctor_new(&sources);
}

void doctor_free(struct doctor *doctor)
{
  doctor_host_clear(&doctor->host);
  doctor_gpus_clear(&doctor->gpus);
  doctor_rdma_clear(&doctor->rdma);
  g_ptr_array_unref(doctor->nics);
  g_ptr_array_unref(doctor->slow_links);
  g_ptr_array_unref(doctor->routes);
  g_ptr_array_unref(doctor->advice);
  g_array_unref(doctor->transports);
  g_array_unref(doctor->devices);
  g_free(doctor->distance);
  g_free(doctor);
}
