/* What to do about what is missing or risky; see doctor.h. Each finding is one line, each advice the command
 * to type, or what to do where no command does it. */
#include <string.h>

#include "backend_real/doctor_parts.h"
#include "backend_real/nic_gid.h"
#include "backend_real/sysfs.h"

#define HUGE_PAGE    (2ULL << 20)
#define FILES_WANTED 65536 /* as the systemd units set it */
#define FILES_LEAST  4096
#define MTU_LARGEST  4096 /* of InfiniBand and RoCE */
#define GIBIBYTE     (1024.0 * 1024 * 1024)

static void advice_free(gpointer data)
{
  struct doctor_advice *advice = data;
  g_free(advice->finding);
  g_free(advice->todo);
  g_free(advice);
}

/* Takes finding and todo. */
static void advise(struct doctor *d, const char *about, char *finding, char *todo)
{
  struct doctor_advice *advice = g_new(struct doctor_advice, 1);
  *advice = (struct doctor_advice){about, finding, todo};
  g_ptr_array_add(d->advice, advice);
}

static gboolean any_nic(const struct doctor *d, gboolean (*is)(const struct nic *nic))
{
  for (guint i = 0; i < d->nics->len; i++)
    if (is(d->nics->pdata[i]))
      return TRUE;
  return FALSE;
}

static gboolean is_active(const struct nic *nic)
{
  return nic->active;
}

/* --- GPUs
 * --------------------------------------------------------------------------------------------------------*/

static void advise_gpus(struct doctor *d)
{
  const struct doctor_gpus *gpus = &d->gpus;
  if (!gpus->cuda_missing)
    return;
  guint count = gpus->list->len;
  g_autofree char *here =
      count ? g_strdup_printf("%u GPU%s on PCI, but ", count, count == 1 ? "" : "s") : g_strdup("");
  const struct gpu_facts *gpu = count ? gpus->list->pdata[0] : NULL;
  char *finding = g_strdup_printf("%sCUDA cannot be used: %s", here, gpus->cuda_missing);
  if (strcmp(gpus->cuda_missing, "built without nvcc") == 0)
    advise(d, "GPU", finding, g_strdup("install the CUDA toolkit, then: make NVCC=/usr/local/cuda/bin/nvcc"));
  else if (gpu && !gpu->driver)
    advise(d, "GPU", finding,
           g_strdup("install NVIDIA's driver, then: modprobe nvidia; check with: nvidia-smi"));
  else if (gpu)
    advise(d, "GPU", finding, g_strdup("nvidia-smi; of a container: docker run --gpus all …"));
  else
    advise(d, "GPU", finding,
           g_strdup("none is needed for --device host; with a GPU: nvidia-smi shows if its driver runs"));
}

static void advise_gpudirect(struct doctor *d)
{
  if (d->gpus.cuda_missing || d->gpus.list->len == 0 || d->nics->len == 0)
    return;
  if (d->gpudirect_missing == doctor_no_export)
    advise(d, "GPUDirect", g_strdup("GPU memory cannot be exported as a dma-buf"),
           g_strdup("install the driver's open kernel modules: apt-get install nvidia-open; until then: "
                    "[pipeline] path = host"));
  if (d->gpudirect_missing == doctor_no_register)
    advise(d, "GPUDirect",
           g_strdup_printf("no RDMA device registers dma-bufs under kernel %s",
                           d->host.kernel ? d->host.kernel : "of unknown release"),
           g_strdup("run Linux 5.12 or newer with its own mlx5_ib, or 6.0 with its efa; until then: "
                    "[pipeline] path = host"));
  if (d->host.iommu && strcmp(d->host.iommu, "translated") == 0)
    advise(d, "GPUDirect",
           g_strdup("the IOMMU translates addresses: reads into GPU memory may be slow, or fail"),
           g_strdup("add iommu=pt to GRUB_CMDLINE_LINUX in /etc/default/grub, then: update-grub && reboot"));
}

/* --- RDMA
 * --------------------------------------------------------------------------------------------------------*/

static void advise_inactive(struct doctor *d, const struct nic *nic)
{
  char *finding = g_strdup_printf("%s:%u is %s", nic->device, nic->port, nic->state);
  if (nic->ethernet && *nic->netdev)
    advise(d, "RDMA", finding,
           g_strdup_printf("ip link set %s up; if it stays so: is its cable in?", nic->netdev));
  else if (strcmp(nic->state, "PORT_INIT") == 0 || strcmp(nic->state, "PORT_ARMED") == 0)
    advise(d, "RDMA", finding,
           g_strdup("no subnet manager has set it up; on one host of the fabric: systemctl start opensm"));
  else
    advise(d, "RDMA", finding, g_strdup("is its cable in? check with: ibv_devinfo -v"));
}

/* Has an address that routers, or at least people, know. */
static gboolean has_address(const struct nic *nic)
{
  for (guint i = 0; i < nic->gids->len; i++)
    if (!address_is_link_local(g_array_index(nic->gids, struct nic_gid, i).raw))
      return TRUE;
  return FALSE;
}

static void advise_roce(struct doctor *d, const struct nic *nic)
{
  const char *netdev = *nic->netdev ? nic->netdev : "NETDEV";
  if (!has_address(nic))
    advise(d, "RDMA",
           g_strdup_printf("%s:%u has no GID with an IP address, so no route leads to it", nic->device,
                           nic->port),
           g_strdup_printf("ip address add ADDRESS/BITS dev %s", netdev));
  if (nic->mtu && nic->mtu < MTU_LARGEST)
    advise(d, "RDMA",
           g_strdup_printf("%s:%u carries %u bytes a packet, of at most %d", nic->device, nic->port, nic->mtu,
                           MTU_LARGEST),
           g_strdup_printf("ip link set %s mtu 9000 (on all hosts; switches must carry it)", netdev));
}

static void advise_no_rdma(struct doctor *d)
{
  const char *netdev = d->rdma.some_netdev ? d->rdma.some_netdev : "NETDEV";
  char *finding = g_strdup("no RDMA device: runs use TCP, which takes processors on both sides");
  if (d->rdma.rxe_module)
    advise(
        d, "RDMA", finding,
        g_strdup_printf(
            "to try verbs in software: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev %s", netdev));
  else
    advise(
        d, "RDMA", finding,
        g_strdup("nothing, if there is no such hardware (no rdma_rxe among this kernel's modules either)"));
}

static void advise_rdma(struct doctor *d)
{
  for (guint i = 0; i < d->rdma.unusable->len; i++) {
    const struct doctor_unusable *unusable = d->rdma.unusable->pdata[i];
    advise(d, "RDMA", g_strdup_printf("%s: %s", unusable->name, unusable->why), g_strdup(unusable->todo));
  }
  for (guint i = 0; i < d->nics->len; i++) {
    const struct nic *nic = d->nics->pdata[i];
    if (!nic->active)
      advise_inactive(d, nic);
    else if (nic->ethernet)
      advise_roce(d, nic);
    else if (nic->kind == NIC_SRD && !nic->srd_reads)
      advise(d, "RDMA",
             g_strdup_printf("%s:%u has no RDMA READ: memory servers send, which takes their processors",
                             nic->device, nic->port),
             g_strdup("take an instance type whose EFA has RDMA READ (p4d and later); check with: fi_info -p "
                      "efa -t FI_EP_RDM"));
  }
  if (d->nics->len == 0 && d->rdma.unusable->len == 0)
    advise_no_rdma(d);
}

static void advise_links(struct doctor *d)
{
  for (guint i = 0; i < d->slow_links->len; i++) {
    const struct doctor_slow_link *link = d->slow_links->pdata[i];
    advise(d, "PCIe", g_strdup_printf("%s %s", link->name, link->why),
           g_strdup_printf("put the card into another slot; check with: lspci -vv -s %s | grep LnkSta",
                           link->pci));
  }
}

/* --- memory and limits
 * -------------------------------------------------------------------------------------------*/

static const struct doctor_pool *huge_pool(const struct doctor *d)
{
  for (guint i = 0; i < d->host.pools->len; i++) {
    const struct doctor_pool *pool = &g_array_index(d->host.pools, struct doctor_pool, i);
    if (pool->page_bytes == HUGE_PAGE)
      return pool;
  }
  return NULL;
}

/* host_memory.c takes huge pages of the pool, else transparent ones, else small ones. */
static void advise_pages(struct doctor *d)
{
  const struct doctor_pool *pool = huge_pool(d);
  const char *transparent = d->host.transparent;
  gboolean never = !transparent || strcmp(transparent, "never") == 0;
  if (never && (!pool || pool->free_pages == 0))
    advise(d, "huge pages",
           g_strdup("arenas get 4 KiB pages: registering them takes long, and NICs look up more addresses"),
           g_strdup("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"));
  else if (pool && pool->free_pages == 0 && any_nic(d, is_active))
    advise(
        d, "huge pages",
        g_strdup_printf("%s: arenas get transparent huge pages, as far as memory is not in pieces",
                        pool->pages ? "the pool of 2 MiB pages is used up"
                                    : "there is no pool of 2 MiB pages"),
        g_strdup(
            "sysctl vm.nr_hugepages=N, with N = arenas' GB x 477 + 1 (host_cache_gb, staging_gb, models)"));
}

static void advise_limits(struct doctor *d)
{
  const struct doctor_limit *memlock = &d->host.memlock, *files = &d->host.files;
  if (memlock->known && memlock->soft != DOCTOR_UNLIMITED && !d->host.ipc_lock && d->nics->len)
    advise(d, "locked memory",
           g_strdup_printf("at most %.3f GB may be locked: larger arenas cannot be registered for RDMA",
                           (double)memlock->soft / 1e9),
           memlock->hard == DOCTOR_UNLIMITED
               ? g_strdup("ulimit -l unlimited")
               : g_strdup("echo '* - memlock unlimited' >> /etc/security/limits.d/rdma.conf, then log in "
                          "again (systemd: LimitMEMLOCK=infinity)"));
  if (files->known && files->soft < FILES_LEAST)
    advise(d, "open files",
           g_strdup_printf("at most %" G_GUINT64_FORMAT
                           ": a controller or memory server of a large cluster has more connections",
                           files->soft),
           g_strdup_printf("ulimit -n %" G_GUINT64_FORMAT "%s", MIN(files->hard, (uint64_t)FILES_WANTED),
                           files->hard < FILES_LEAST ? " (more: nofile in /etc/security/limits.d)" : ""));
  if (d->host.bytes_max < d->host.bytes)
    advise(d, "memory",
           g_strdup_printf("this container may have %.2f GB of the machine's %.2f GB",
                           (double)d->host.bytes_max / 1e9, (double)d->host.bytes / 1e9),
           g_strdup("keep arenas below that (host_cache_gb, staging_gb), or: docker run --memory=…"));
}

void doctor_advise(struct doctor *doctor)
{
  doctor->advice = g_ptr_array_new_with_free_func(advice_free);
  advise_gpus(doctor);
  advise_rdma(doctor);
  advise_gpudirect(doctor);
  advise_links(doctor);
  advise_pages(doctor);
  advise_limits(doctor);
}
