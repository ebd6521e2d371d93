/* The ports of this machine's RDMA devices, by libibverbs; see nic.h. */
#include <errno.h>
#include <infiniband/efadv.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <string.h>

#include "backend_real/nic.h"
#include "backend_real/sysfs.h"

/* More GIDs than any driver has; one that claims more is not believed. */
#define GIDS_MAX 4096

struct opened {
  struct ibv_context *context;
  struct ibv_device_attr attributes;
  struct ibv_gid_entry *gids;
  size_t gid_count;
  gboolean dmabuf;
};

static void nic_free(gpointer data)
{
  struct nic *nic = data;
  g_array_unref(nic->gids);
  g_free(nic);
}

/* --- a device
 * ----------------------------------------------------------------------------------------------------*/

/* Registers what cannot be registered: a driver that knows dma-bufs says that the file is bad. */
static gboolean knows_dmabuf(struct ibv_context *context)
{
  struct ibv_pd *domain = ibv_alloc_pd(context);
  if (!domain)
    return FALSE;
  struct ibv_mr *mr = ibv_reg_dmabuf_mr(domain, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE);
  gboolean known = mr || errno == EBADF;
  if (mr)
    ibv_dereg_mr(mr);
  ibv_dealloc_pd(domain);
  return known;
}

static void query_gids(struct opened *device)
{
  size_t room = 0;
  for (unsigned port = 1; port <= device->attributes.phys_port_cnt && room < GIDS_MAX; port++) {
    struct ibv_port_attr attributes;
    if (ibv_query_port(device->context, (uint8_t)port, &attributes) == 0)
      room += (size_t)CLAMP(attributes.gid_tbl_len, 0, GIDS_MAX);
  }
  room = MIN(room, GIDS_MAX);
  device->gids = g_new0(struct ibv_gid_entry, MAX(room, 1));
  ssize_t count = room ? ibv_query_gid_table(device->context, device->gids, room, 0) : 0;
  device->gid_count = (size_t)CLAMP(count, 0, (ssize_t)room);
}

static gboolean device_open(struct ibv_device *of, struct opened *device)
{
  device->context = ibv_open_device(of);
  if (!device->context)
    return FALSE;
  if (ibv_query_device(device->context, &device->attributes) != 0) {
    ibv_close_device(device->context);
    return FALSE;
  }
  query_gids(device);
  device->dmabuf = knows_dmabuf(device->context);
  return TRUE;
}

static void device_close(struct opened *device)
{
  g_free(device->gids);
  ibv_close_device(device->context);
}

/* --- a port
 * ------------------------------------------------------------------------------------------------------*/

/* Bytes are what is counted: the rate of data, after the lanes' coding. */
static double rate_gbit_s(const struct ibv_port_attr *port)
{
  static const struct {
    uint8_t code;
    double lanes;
  } width[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  static const struct {
    uint8_t code;
    double gbit_s;
  } speed[] = {{1, 2.5}, {2, 5}, {4, 10}, {8, 10}, {16, 14}, {32, 25}, {64, 50}, {128, 100}};
  double lanes = 0, lane_gbit_s = 0;
  for (size_t i = 0; i < G_N_ELEMENTS(width); i++)
    if (width[i].code == port->active_width)
      lanes = width[i].lanes;
  for (size_t i = 0; i < G_N_ELEMENTS(speed); i++)
    if (speed[i].code == port->active_speed)
      lane_gbit_s = speed[i].gbit_s;
  return lanes * lane_gbit_s;
}

static const char *state_text(enum ibv_port_state state)
{
  static const char *const text[] = {
      [IBV_PORT_NOP] = "PORT_NOP",       [IBV_PORT_DOWN] = "PORT_DOWN",
      [IBV_PORT_INIT] = "PORT_INIT",     [IBV_PORT_ARMED] = "PORT_ARMED",
      [IBV_PORT_ACTIVE] = "PORT_ACTIVE", [IBV_PORT_ACTIVE_DEFER] = "PORT_ACTIVE_DEFER",
  };
  return (unsigned)state < G_N_ELEMENTS(text) ? text[state] : "unknown state";
}

static const char *gid_type_text(uint32_t type)
{
  return type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" : "IB";
}

static void copy_gids(struct nic *nic, const struct opened *device)
{
  for (size_t i = 0; i < device->gid_count; i++) {
    const struct ibv_gid_entry *entry = &device->gids[i];
    if (entry->port_num != nic->port)
      continue;
    struct nic_gid gid = {.index = entry->gid_index, .type = gid_type_text(entry->gid_type)};
    memcpy(gid.raw, entry->gid.raw, sizeof gid.raw);
    g_array_append_val(nic->gids, gid);
    char name[IF_NAMESIZE];
    if (!*nic->netdev && entry->ndev_ifindex && if_indextoname(entry->ndev_ifindex, name))
      g_strlcpy(nic->netdev, name, sizeof nic->netdev);
  }
}

/* Of InfiniBand, whose GIDs name none: the network device over the port. */
static void find_netdev(struct nic *nic, const char *path)
{
  g_auto(GStrv) names = sysfs_names(path, "/device/net");
  for (guint i = 0; names[i] && !*nic->netdev; i++) {
    int64_t port;
    if (sysfs_number(path, &port, "/device/net/%s/dev_port", names[i]) && port + 1 == nic->port)
      g_strlcpy(nic->netdev, names[i], sizeof nic->netdev);
  }
}

static void find_on_pci(struct nic *nic, const char *path)
{
  g_autofree char *real = sysfs_real_path(path, "/device");
  if (real)
    sysfs_pci_of_path(real, nic->pci, sizeof nic->pci);
  nic->numa = sysfs_pci_numa("", nic->pci);
}

static void set_limits(struct nic *nic, const struct opened *device, const struct ibv_port_attr *port)
{
  const struct ibv_device_attr *of = &device->attributes;
  nic->mtu =
      port->active_mtu >= IBV_MTU_256 && port->active_mtu <= IBV_MTU_4096 ? 128U << port->active_mtu : 0;
  nic->reads_asked = (uint32_t)MAX(of->max_qp_init_rd_atom, 0);
  nic->reads_served = (uint32_t)MAX(of->max_qp_rd_atom, 0);
  nic->region_max = of->max_mr_size;
  nic->regions_max = (uint32_t)MAX(of->max_mr, 0);
  nic->dmabuf = device->dmabuf;
}

/* An EFA device's packets are as long as its messages may be, which no IB MTU names. FALSE: it is none. */
static gboolean set_srd(struct nic *nic, const struct opened *device, const struct ibv_port_attr *port)
{
  struct efadv_device_attr attributes = {0};
  if (efadv_query_device(device->context, &attributes, sizeof attributes) != 0)
    return FALSE;
  nic->kind = NIC_SRD;
  nic->mtu = port->max_msg_sz;
  nic->srd_reads = (attributes.device_caps & EFADV_DEVICE_ATTR_CAPS_RDMA_READ) != 0;
  nic->srd_read_max = attributes.max_rdma_size;
  return TRUE;
}

static struct nic *nic_new(const struct opened *device, struct ibv_device *of, uint8_t port_number)
{
  struct ibv_port_attr port;
  if (ibv_query_port(device->context, port_number, &port) != 0)
    return NULL;
  struct nic *nic = g_new0(struct nic, 1);
  g_strlcpy(nic->device, ibv_get_device_name(of), sizeof nic->device);
  nic->port = port_number;
  nic->kind = NIC_RC;
  nic->active = port.state == IBV_PORT_ACTIVE;
  nic->ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  g_strlcpy(nic->state, state_text(port.state), sizeof nic->state);
  nic->gbit_s = rate_gbit_s(&port);
  nic->lid = port.lid;
  nic->gids = g_array_new(FALSE, FALSE, sizeof(struct nic_gid));
  set_limits(nic, device, &port);
  copy_gids(nic, device);
  find_on_pci(nic, of->ibdev_path);
  if (set_srd(nic, device, &port))
    nic->ethernet = FALSE;
  else if (!*nic->netdev)
    find_netdev(nic, of->ibdev_path);
  return nic;
}

/* --- all
 * ---------------------------------------------------------------------------------------------------------*/

/* iWARP has RC, but connects only through its connection manager, and other transports have none: left out.
 */
static gboolean speaks_verbs(const struct ibv_device *device)
{
  return device->transport_type == IBV_TRANSPORT_IB || device->transport_type == IBV_TRANSPORT_UNSPECIFIED;
}

static void add_ports(GPtrArray *nics, struct ibv_device *of)
{
  struct opened device = {NULL};
  if (!speaks_verbs(of) || !device_open(of, &device))
    return;
  for (unsigned port = 1; port <= device.attributes.phys_port_cnt; port++) {
    struct nic *nic = nic_new(&device, of, (uint8_t)port);
    if (nic && of->transport_type == IBV_TRANSPORT_UNSPECIFIED && nic->kind != NIC_SRD)
      nic_free(nic);
    else if (nic)
      g_ptr_array_add(nics, nic);
  }
  device_close(&device);
}

static gint compare_nics(gconstpointer a, gconstpointer b)
{
  const struct nic *x = *(struct nic *const *)a, *y = *(struct nic *const *)b;
  int order = strverscmp(x->device, y->device);
  return order ? order : x->port - y->port;
}

GPtrArray *nics_list(void)
{
  GPtrArray *nics = g_ptr_array_new_with_free_func(nic_free);
  int count = 0;
  struct ibv_device **list = ibv_get_device_list(&count);
  for (int i = 0; list && i < count; i++)
    add_ports(nics, list[i]);
  if (list)
    ibv_free_device_list(list);
  g_ptr_array_sort(nics, compare_nics);
  return nics;
}
