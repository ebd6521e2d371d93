/* The doctor on machines whose files are odd, and the command on this one. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <yajl/yajl_tree.h>

#include "doctor_patient.h"
#include "spawned.h"

static const char *const files[] = {
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self/limits",
    "/proc/self/status",
    "/proc/sys/kernel/osrelease",
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/gpus/0000:00:06.0/information",
    "/sys/bus/pci/devices/0000:00:06.0/vendor",
    "/sys/bus/pci/devices/0000:00:06.0/class",
    "/sys/bus/pci/devices/0000:00:06.0/numa_node",
    "/sys/bus/pci/devices/0000:00:06.0/driver",
    "/sys/bus/pci/devices/no address\n/vendor",
    "/sys/class/infiniband/odd_0/node_type",
    "/sys/class/infiniband/odd\n1/node_type",
    "/sys/class/infiniband_verbs/uverbs0/ibdev",
    "/sys/class/net/eth0/type",
    "/sys/class/net/eth0/operstate",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/node0/cpulist",
    "/sys/devices/system/node/node0/meminfo",
    "/sys/devices/system/node/node99999999999999999999/meminfo",
    "/sys/fs/cgroup/memory.max",
    "/sys/kernel/iommu_groups/0/type",
    "/sys/kernel/mm/hugepages/hugepages-18446744073709551615kB/nr_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-kB/nr_hugepages",
    "/sys/kernel/mm/transparent_hugepage/enabled",
};

static const char *const words[] = {
    "",
    "\n",
    "0x10de",
    "0x030200",
    "-1",
    "99999999999999999999",
    "18446744073709551615",
    "nan",
    ":",
    "]",
    "[",
    "[]",
    "MemTotal: 18446744073709551615 kB\nMemAvailable: -1 kB",
    "Max locked memory unlimited",
    "Max open files -5 x files",
    "Max locked memory 1 18446744073709551616 bytes",
    "CapEff:\tffffffffffffffffffff",
    "Node 0 MemTotal: x kB",
    "odd_0",
    "up",
    "1",
    "Model:",
    "model name\t:\a\033[31m",
    "\xff\xfe\xc3\x28",
    "Kernel Module  1:2 .",
};

/* A word, random bytes, or no regular file at all: a folder, a pipe that nobody writes, a link to itself. */
static void make_odd(FakeRoot *root, const char *path, GRand *random)
{
  char bytes[64];
  g_autofree char *full = g_strconcat(root->path, path, NULL), *folder = g_path_get_dirname(full);
  cr_assert_eq(g_mkdir_with_parents(folder, 0755), 0);
  switch (g_rand_int_range(random, 0, 8)) {
  case 0:
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (char)g_rand_int(random);
    fake_bytes(root, path, bytes, (size_t)g_rand_int_range(random, 0, sizeof bytes));
    break;
  case 1:
    cr_assert_eq(g_mkdir_with_parents(full, 0755), 0);
    break;
  case 2:
    cr_assert_eq(mkfifo(full, 0600), 0);
    break;
  case 3:
    fake_link(root, path, path);
    break;
  case 4:
    break;
  default:
    fake_file(root, path, words[g_rand_int_range(random, 0, G_N_ELEMENTS(words))]);
  }
}

static gboolean is_plain(const char *text)
{
  for (; *text; text++)
    if (((unsigned char)*text < 0x20 && *text != '\n') || *text == 0x7f)
      return FALSE;
  return TRUE;
}

Test(doctor_odd, machines, .timeout = 60)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(12);
  for (unsigned round = 0; round < 60; round++) {
    g_autoptr(Patient) p = patient_new();
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
      make_odd(p->root, files[i], random);
    const struct doctor_sources sources = {.root = p->root->path,
                                           .nics = p->lab->nics,
                                           .addresses = p->lab->ground.addresses,
                                           .gpus = p->gpus,
                                           .cuda_missing = "no GPU"};
    g_autoptr(Doctor) doctor = doctor_new(&sources);
    g_autofree char *text = doctor_said(doctor), *json = doctor_wrote(doctor);
    char reason[256];
    yajl_val root = yajl_tree_parse(json, reason, sizeof reason);
    cr_assert(root, "%s", reason);
    yajl_tree_free(root);
    cr_assert(is_plain(text) && g_utf8_validate(text, -1, NULL), "%s", text);
  }
}

/* --- the command
 * ------------------------------------------------------------------------------------------------*/

Test(command_doctor, here)
{
  g_autoptr(Spawned) text = spawn("distmind-real", "doctor"), json = spawn("distmind-real", "doctor --json");
  static const char *const titles[] = {"machine\n", "\nGPUs\n", "\nRDMA devices\n",
                                       "\nwhat auto takes here\n", "\nwhat to do\n"};
  cr_assert_eq(text->status, 0);
  cr_assert_eq(json->status, 0);
  cr_assert_str_eq(text->err, "");
  cr_assert_str_eq(json->err, "");
  const char *at = text->out;
  for (size_t i = 0; i < G_N_ELEMENTS(titles); i++)
    cr_assert(at = strstr(at, titles[i]), "%s: %s", titles[i], text->out);
  char reason[256];
  yajl_val root = yajl_tree_parse(json->out, reason, sizeof reason);
  cr_assert(root, "%s", reason);
  yajl_val bytes = yajl_tree_get(root, (const char *[]){"machine", "memory_bytes", NULL}, yajl_t_number);
  cr_assert(bytes && YAJL_GET_INTEGER(bytes) > 100000000);
  yajl_val taken = yajl_tree_get(root, (const char *[]){"transport", "auto", NULL}, yajl_t_string);
  cr_assert(taken);
  g_autofree char *line = g_strdup_printf("  --transport  %s", taken->u.string);
  cr_assert(strstr(text->out, line), "%s", text->out);
  yajl_tree_free(root);
}

Test(command_doctor, usage)
{
  g_autoptr(Spawned) help = spawn("distmind-real", "doctor --help");
  cr_assert_eq(help->status, 0);
  cr_assert(strstr(help->out, "usage: distmind-real doctor [--json]\n") &&
            strstr(help->out, "\nExit status: 0"));
  static const char *const wrong[] = {"doctor now", "doctor --jsn"};
  for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
    g_autoptr(Spawned) run = spawn("distmind-real", wrong[i]);
    expect_refusal(run, "distmind-real: ");
  }
}
