/* RDMA devices; see verbs_device.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/verbs_device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/error.h"

static struct ibv_context *open_context(const char *name)
{
  struct ibv_device **list = ibv_get_device_list(NULL);
  struct ibv_context *context = NULL;
  errno = ENODEV;
  for (struct ibv_device **d = list; d && *d; d++)
    if (strcmp(ibv_get_device_name(*d), name) == 0) {
      context = ibv_open_device(*d);
      break;
    }
  int saved = errno;
  if (list)
    ibv_free_device_list(list);
  errno = saved;
  return context;
}

static gboolean never_blocks(int fd)
{
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

struct verbs_device *verbs_device_open(const struct nic *nic, const struct nic_gid *gid, GError **error)
{
  struct verbs_device *device = g_new0(struct verbs_device, 1);
  device->nic = *nic;
  device->nic.gids = NULL;
  device->gid = *gid;
  g_snprintf(device->name, sizeof device->name, "%s:%u", nic->device, nic->port);
  device->context = open_context(nic->device);
  if (device->context && never_blocks(device->context->async_fd))
    device->pd = ibv_alloc_pd(device->context);
  if (device->pd)
    return device;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot open the RDMA device %s: %s%s", nic->device,
              g_strerror(errno),
              errno == EACCES || errno == EPERM
                  ? " (who runs this must be let read and write /dev/infiniband/uverbs*)"
                  : "");
  verbs_device_close(device);
  return NULL;
}

void verbs_device_close(struct verbs_device *device)
{
  if (!device)
    return;
  if (device->pd && ibv_dealloc_pd(device->pd) != 0)
    g_critical("%s: a protection domain is still in use", device->name);
  if (device->context)
    ibv_close_device(device->context);
  g_free(device);
}

/* --- completion channels
 * --------------------------------------------------------------------------------------------*/

struct ibv_comp_channel *verbs_device_channel(const struct verbs_device *device)
{
  struct ibv_comp_channel *channel = ibv_create_comp_channel(device->context);
  if (!channel || never_blocks(channel->fd))
    return channel;
  int saved = errno;
  ibv_destroy_comp_channel(channel);
  errno = saved;
  return NULL;
}

void verbs_device_drain(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
  struct ibv_cq *of;
  void *context;
  unsigned events = 0;
  while (ibv_get_cq_event(channel, &of, &context) == 0)
    events++;
  if (events > 0)
    ibv_ack_cq_events(cq, events);
}

/* --- events
 * --------------------------------------------------------------------------------------------------------*/

static const char *qp_error(enum ibv_event_type type)
{
  switch (type) {
  case IBV_EVENT_QP_FATAL:
    return "its queue pair broke";
  case IBV_EVENT_QP_REQ_ERR:
    return "it sent a request that is none";
  case IBV_EVENT_QP_ACCESS_ERR:
    return "it asked for memory that it may not read";
  case IBV_EVENT_PATH_MIG_ERR:
    return "its path is lost";
  default:
    return NULL;
  }
}

static void log_device(const struct verbs_device *device, enum ibv_event_type type)
{
  switch (type) {
  case IBV_EVENT_DEVICE_FATAL:
  case IBV_EVENT_PORT_ERR:
    g_warning("RDMA device %s: %s", device->name, ibv_event_type_str(type));
    break;
  case IBV_EVENT_PORT_ACTIVE:
  case IBV_EVENT_LID_CHANGE:
  case IBV_EVENT_GID_CHANGE:
    g_message("RDMA device %s: %s", device->name, ibv_event_type_str(type));
    break;
  default:
    g_debug("RDMA device %s: %s", device->name, ibv_event_type_str(type));
  }
}

static gboolean is_of_qp(enum ibv_event_type type)
{
  return qp_error(type) || type == IBV_EVENT_COMM_EST || type == IBV_EVENT_SQ_DRAINED ||
         type == IBV_EVENT_PATH_MIG || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

gboolean verbs_device_event(struct verbs_device *device, void **qp, const char **why)
{
  struct ibv_async_event event;
  *qp = NULL;
  *why = NULL;
  if (ibv_get_async_event(device->context, &event) != 0)
    return FALSE;
  if (is_of_qp(event.event_type)) {
    *why = qp_error(event.event_type);
    *qp = *why ? event.element.qp->qp_context : NULL;
  } else {
    log_device(device, event.event_type);
    device->failed |= event.event_type == IBV_EVENT_DEVICE_FATAL;
  }
  ibv_ack_async_event(&event);
  return TRUE;
}
