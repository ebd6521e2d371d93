/* RDMA devices that cannot be used as they stand: known to the kernel but not to libibverbs, or on PCI but
 * not known to the kernel's RDMA; see doctor.h. */
#include <string.h>
#include <unistd.h>

#include "backend_real/doctor_parts.h"
#include "backend_real/sysfs.h"

#define CLASS_INFINIBAND 0x0207
#define CLASS_ETHERNET   0x0200

/* --- devices that the kernel knows
 * -------------------------------------------------------------------------------*/

static gboolean is_listed(GPtrArray *nics, const char *device)
{
  for (guint i = 0; i < nics->len; i++)
    if (strcmp(((const struct nic *)nics->pdata[i])->device, device) == 0)
      return TRUE;
  return FALSE;
}

/* "uverbs0", whose `ibdev` is the device; NULL: none. */
static char *verbs_node(const char *root, const char *device)
{
  g_auto(GStrv) names = sysfs_names(root, "/sys/class/infiniband_verbs");
  for (guint i = 0; names[i]; i++) {
    g_autofree char *of = sysfs_text(root, "/sys/class/infiniband_verbs/%s/ibdev", names[i]);
    if (of && strcmp(of, device) == 0)
      return g_strdup(names[i]);
  }
  return NULL;
}

static gboolean may_open(const char *root, const char *node)
{
  g_autofree char *path = g_strdup_printf("%s/dev/infiniband/%s", root, node);
  return access(path, R_OK | W_OK) == 0;
}

static gboolean is_iwarp(const char *root, const char *device)
{
  g_autofree char *type = sysfs_text(root, "/sys/class/infiniband/%s/node_type", device);
  return type && strstr(type, "RNIC") != NULL;
}

/* Takes all but about. */
static void add_unusable(struct doctor_rdma *rdma, const char *name, char *why, char *todo)
{
  struct doctor_unusable *unusable = g_new(struct doctor_unusable, 1);
  *unusable = (struct doctor_unusable){g_strdup(name), why, todo};
  g_ptr_array_add(rdma->unusable, unusable);
}

/* What stands between a device of the kernel and libibverbs, from below. */
static void explain(struct doctor_rdma *rdma, const char *root, const char *device)
{
  g_autofree char *node = verbs_node(root, device);
  if (is_iwarp(root, device))
    add_unusable(rdma, device, g_strdup("iWARP: connects only through its connection manager"),
                 g_strdup("use an InfiniBand, RoCE or EFA device, or --transport tcp"));
  else if (!rdma->verbs_module)
    add_unusable(rdma, device, g_strdup("kernel module ib_uverbs is not loaded"),
                 g_strdup("modprobe ib_uverbs"));
  else if (!node)
    add_unusable(rdma, device, g_strdup("has no verbs device in this kernel"),
                 g_strdup("dmesg | grep -i -e infiniband -e uverbs"));
  else if (!sysfs_exists(root, "/dev/infiniband/%s", node))
    add_unusable(rdma, device, g_strdup_printf("/dev/infiniband/%s is missing here", node),
                 g_strdup("of a container: docker run --device=/dev/infiniband --cap-add=IPC_LOCK …; else: "
                          "udevadm trigger"));
  else if (!may_open(root, node))
    add_unusable(rdma, device, g_strdup_printf("no right to open /dev/infiniband/%s", node),
                 g_strdup_printf("chmod 666 /dev/infiniband/%s (a udev rule keeps it so)", node));
  else
    add_unusable(rdma, device, g_strdup("libibverbs has no provider for it, or it does not answer"),
                 g_strdup("apt-get install ibverbs-providers; then: ibv_devinfo -v"));
}

static void add_unlisted(struct doctor_rdma *rdma, const struct doctor_sources *sources)
{
  g_auto(GStrv) names = sysfs_names(sources->root, "/sys/class/infiniband");
  for (guint i = 0; names[i]; i++)
    if (!is_listed(sources->nics, names[i]))
      explain(rdma, sources->root, names[i]);
}

/* --- devices on PCI
 * ----------------------------------------------------------------------------------------------*/

/* The module that makes an RDMA device of it; NULL: it is none that this knows. */
static const char *rdma_module(uint32_t vendor, uint32_t device, uint32_t class)
{
  gboolean network = class == CLASS_ETHERNET || class == CLASS_INFINIBAND;
  if (vendor == 0x1d0f && device >= 0xefa0 && device <= 0xefaf)
    return "efa";
  if (vendor == 0x15b3 && network)
    return device >= 0x1002 && device <= 0x1010 ? "mlx4_ib"
                                                : "mlx5_ib"; /* ConnectX-3; ConnectX-4 and later */
  return NULL;
}

static void add_bare(struct doctor_rdma *rdma, const char *root)
{
  g_auto(GStrv) names = sysfs_names(root, "/sys/bus/pci/devices");
  for (guint i = 0; names[i]; i++) {
    uint32_t vendor = doctor_pci_number(root, names[i], "vendor"),
             device = doctor_pci_number(root, names[i], "device"),
             class = doctor_pci_number(root, names[i], "class") >> 8;
    const char *module = sysfs_is_pci(names[i]) ? rdma_module(vendor, device, class) : NULL;
    if (!module || sysfs_exists(root, "/sys/bus/pci/devices/%s/infiniband", names[i]))
      continue;
    g_autofree char *driver = doctor_pci_driver(root, names[i]);
    add_unusable(rdma, names[i],
                 g_strdup_printf("can RDMA (%04x:%04x), but the kernel makes no RDMA device of it%s%s",
                                 vendor, device, driver ? "; its driver is " : "", driver ? driver : ""),
                 g_strdup_printf("modprobe %s", module));
  }
}

/* --- Soft-RoCE
 * --------------------------------------------------------------------------------------------------*/

/* The first Ethernet device (ARPHRD_ETHER is 1) that is up. */
static char *find_netdev(const char *root)
{
  g_auto(GStrv) names = sysfs_names(root, "/sys/class/net");
  for (guint i = 0; names[i]; i++) {
    int64_t type;
    g_autofree char *state = sysfs_text(root, "/sys/class/net/%s/operstate", names[i]);
    if (sysfs_number(root, &type, "/sys/class/net/%s/type", names[i]) && type == 1 && state &&
        strcmp(state, "up") == 0)
      return g_strdup(names[i]);
  }
  return NULL;
}

static gboolean has_rxe(const char *root)
{
  static const char *const packed[] = {"", ".xz", ".zst", ".gz"};
  g_autofree char *release = sysfs_text(root, "/proc/sys/kernel/osrelease");
  gboolean found = sysfs_exists(root, "/sys/module/rdma_rxe");
  for (size_t i = 0; release && !found && i < G_N_ELEMENTS(packed); i++)
    found = sysfs_exists(root, "/lib/modules/%s/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko%s", release,
                         packed[i]);
  return found;
}

/* --- all
 * ---------------------------------------------------------------------------------------------------------*/

static void unusable_free(gpointer data)
{
  struct doctor_unusable *unusable = data;
  g_free(unusable->name);
  g_free(unusable->why);
  g_free(unusable->todo);
  g_free(unusable);
}

void doctor_rdma_read(struct doctor_rdma *rdma, const struct doctor_sources *sources)
{
  rdma->unusable = g_ptr_array_new_with_free_func(unusable_free);
  rdma->verbs_module = sysfs_exists(sources->root, "/sys/class/infiniband_verbs");
  rdma->rxe_module = has_rxe(sources->root);
  rdma->some_netdev = find_netdev(sources->root);
  add_unlisted(rdma, sources);
  add_bare(rdma, sources->root);
}

void doctor_rdma_clear(struct doctor_rdma *rdma)
{
  g_free(rdma->some_netdev);
  g_ptr_array_unref(rdma->unusable);
}
