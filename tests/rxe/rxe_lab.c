/* The virtual machine's devices; see rxe_lab.h. */
#include "rxe_lab.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *from_environment(const char *name)
{
  const char *value = g_getenv(name);
  cr_assert(value && *value, "%s is not set: these tests run in the machine of tests/rxe/vm.sh", name);
  return value;
}

const char *rxe_device(int which)
{
  return from_environment(which == 0 ? "DEVICE_A" : "DEVICE_B");
}

const char *rxe_address(int which)
{
  return from_environment(which == 0 ? "ADDRESS_A" : "ADDRESS_B");
}

static guint64 read_counter(const char *path)
{
  g_autofree char *text = NULL;
  guint64 value = 0;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL), "cannot read %s", path);
  cr_assert(g_ascii_string_to_unsigned(g_strstrip(text), 10, 0, G_MAXUINT64, &value, NULL), "%s: %s", path,
            text);
  return value;
}

guint64 rxe_packets_of(int which)
{
  g_autofree char *path =
      g_strdup_printf("/sys/class/infiniband/%s/ports/1/hw_counters/rcvd_pkts", rxe_device(which));
  return read_counter(path);
}

guint64 rxe_packets(void)
{
  return rxe_packets_of(0) + rxe_packets_of(1);
}

guint64 rxe_pair_bytes(void)
{
  return read_counter("/sys/class/net/va/statistics/tx_bytes") +
         read_counter("/sys/class/net/vb/statistics/tx_bytes");
}

char *rxe_experiment(const char *name)
{
  return g_build_filename(DM_SOURCE_DIR, "experiments", name, NULL);
}

struct process *rxe_run(ClusterLab *lab, const char *experiment, const char *transport, const char *database,
                        const char *more)
{
  struct process *client =
      lab_start(lab, "run %s --local --device host --transport %s --json --quiet --log info --out %s%s%s",
                experiment, transport, database, *more ? " " : "", more);
  cr_assert(process_await(client, 120), "over %s: the run does not end", transport);
  return client;
}

gint64 rxe_servers_using(ClusterLab *lab, const char *database, const char *transport)
{
  g_autofree char *sql =
      g_strdup_printf("SELECT (length(notices) - length(replace(notices, 'transport %s', ''))) / %zu "
                      "FROM run",
                      transport, strlen("transport ") + strlen(transport));
  return outcome_ask(lab, database, sql);
}
