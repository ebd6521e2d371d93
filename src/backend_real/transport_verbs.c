/* The verbs transport's operations; see transport_verbs.h. */
#include "backend_real/transport_verbs.h"

#include "core/error.h"

static const char *verbs_missing(void)
{
  g_autoptr(GPtrArray) nics = nics_list();
  if (nics->len == 0)
    return "no RDMA device";
  for (guint i = 0; i < nics->len; i++) {
    const struct nic *nic = g_ptr_array_index(nics, i);
    if (nic->active && verbs_queue_ops(nic->kind))
      return NULL;
  }
  return "no RDMA device with an active port";
}

gboolean verbs_options_good(const struct transport_options *options, gboolean can_post, GError **error)
{
  if (options->pace_bytes_s > 0)
    return input_error(error, NULL, 0,
                       "transport verbs cannot limit its rate (its NICs move the bytes): only tcp can");
  if (!can_post) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
                "transport verbs needs a control plane that carries letters");
    return FALSE;
  }
  return TRUE;
}

GArray *verbs_choose(GPtrArray *nics, const struct transport_options *options, const char *local,
                     const char *pci, GError **error)
{
  struct nic_wish wish = {.devices = options->rdma_device,
                          .gid_given = options->gid_given,
                          .gid_index = options->gid_index,
                          .local = local,
                          .pci = pci};
  return nics_choose(nics, &wish, error);
}

uint32_t verbs_watch(const struct verbs_end *end, struct pollfd *fds)
{
  int fd[VERBS_FDS];
  uint32_t count = end->ops->fds(end, fd);
  for (uint32_t i = 0; i < count; i++)
    fds[i] = (struct pollfd){.fd = fd[i], .events = POLLIN};
  return count;
}

const struct transport_ops transport_verbs = {
    .name = "verbs",
    .missing = verbs_missing,
    .shelf_new = verbs_shelf_new,
    .shelf_free = verbs_shelf_free,
    .shelf_address = verbs_shelf_address,
    .shelf_serve = verbs_shelf_serve,
    .shelf_failure = verbs_shelf_failure,
    .shelf_admit = verbs_shelf_admit,
    .shelf_expel = verbs_shelf_expel,
    .shelf_letter = verbs_shelf_letter,
    .shelf_bytes = verbs_shelf_bytes,
    .shelf_state = verbs_shelf_state,
    .reader_new = verbs_reader_new,
    .reader_free = verbs_reader_free,
    .reader_peer = verbs_reader_peer,
    .reader_drop = verbs_reader_drop,
    .reader_letter = verbs_reader_letter,
    .reader_read = verbs_reader_read,
    .reader_bytes = verbs_reader_bytes,
    .reader_state = verbs_reader_state,
};
