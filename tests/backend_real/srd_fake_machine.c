/* A machine whose only RDMA device is a fake EFA: stands in for nics_list and verbs_srd_open (the linker's
 * --wrap), so that whole transports run over it; see srd_fake.h. */
#include <string.h>

#include "backend_real/srd_end.h"
#include "srd_fake.h"

static struct {
  gboolean here;
  gboolean reads, second;
  uint32_t read_max, datagram_max;
} machine;

GPtrArray *__real_nics_list(void);
GPtrArray *__wrap_nics_list(void);
struct verbs_end *__real_verbs_srd_open(const struct verbs_end_config *config, GError **error);
struct verbs_end *__wrap_verbs_srd_open(const struct verbs_end_config *config, GError **error);

void srd_fake_machine(gboolean reads, uint32_t read_max, uint32_t datagram_max)
{
  machine.here = datagram_max > 0;
  machine.second = FALSE;
  machine.reads = reads;
  machine.read_max = read_max;
  machine.datagram_max = datagram_max;
}

void srd_fake_second(void)
{
  machine.second = TRUE;
}

gboolean srd_fake_is_machine(void)
{
  return machine.here;
}

static void nic_free(gpointer data)
{
  struct nic *nic = data;
  g_array_unref(nic->gids);
  g_free(nic);
}

static struct nic *nic_new(const char *device, uint8_t last)
{
  struct nic_gid gid = {.raw = {0xfe, 0x80, [15] = last}, .type = "IB"};
  struct nic *nic = g_new0(struct nic, 1);
  *nic = (struct nic){.port = 1,
                      .kind = NIC_SRD,
                      .active = TRUE,
                      .state = "PORT_ACTIVE",
                      .numa = -1,
                      .gbit_s = 100,
                      .mtu = machine.datagram_max,
                      .srd_reads = machine.reads,
                      .srd_read_max = machine.read_max,
                      .gids = g_array_new(FALSE, FALSE, sizeof(struct nic_gid))};
  g_strlcpy(nic->device, device, sizeof nic->device);
  g_array_append_val(nic->gids, gid);
  return nic;
}

GPtrArray *__wrap_nics_list(void)
{
  if (!machine.here)
    return __real_nics_list();
  GPtrArray *nics = g_ptr_array_new_with_free_func(nic_free);
  g_ptr_array_add(nics, nic_new("efa_0", 1));
  if (machine.second)
    g_ptr_array_add(nics, nic_new("efa_1", 2));
  return nics;
}

struct verbs_end *__wrap_verbs_srd_open(const struct verbs_end_config *config, GError **error)
{
  return machine.here ? srd_end_open(&srd_fake, config, error) : __real_verbs_srd_open(config, error);
}
