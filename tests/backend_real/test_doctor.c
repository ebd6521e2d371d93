/* What the doctor finds on made-up machines. */
#include <criterion/criterion.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "doctor_patient.h"

/* From "TITLE\n" to the empty line, or the end. */
static char *section(const char *text, const char *title)
{
  g_autofree char *head = g_strconcat(title, "\n", NULL);
  const char *from = strstr(text, head), *to = from ? strstr(from, "\n\n") : NULL;
  if (!from)
    return g_strdup("");
  from += strlen(head);
  return to ? g_strndup(from, to + 1 - from) : g_strdup(from);
}

static void expect_section(const char *text, const char *title, const char *expected)
{
  g_autofree char *got = section(text, title);
  cr_expect_str_eq(got, expected, "%s:\n%s\nnot\n%s", title, got, expected);
}

/* --- a machine with two EFA devices
 * ------------------------------------------------------------------------------*/

static void fake_limits(Patient *p, const char *memlock, const char *files, const char *capabilities)
{
  g_autofree char *limits =
      g_strdup_printf("Limit                     Soft Limit           Hard Limit           Units     \n"
                      "Max open files            %s                files     \n"
                      "Max locked memory         %s           bytes     \n",
                      files, memlock);
  g_autofree char *status = g_strdup_printf(
      "Name:\tdoctor\nCapEff:\t%s\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n", capabilities);
  fake_file(p->root, "/proc/self/limits", limits);
  fake_file(p->root, "/proc/self/status", status);
}

static void fake_host(Patient *p)
{
  fake_two_nodes(p->root);
  fake_file(p->root, "/proc/sys/kernel/osrelease", "6.1.0-23-amd64\n");
  fake_file(p->root, "/proc/cpuinfo",
            "processor\t: 0\nmodel name\t: AMD EPYC 9R14\nprocessor\t: 1\nmodel name\t: other\n");
  fake_file(p->root, "/proc/meminfo",
            "MemTotal:        2000000 kB\nMemFree: 5 kB\nMemAvailable:   1000000 kB\n");
  fake_file(p->root, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  fake_file(p->root, "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
  fake_file(p->root, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n");
  fake_file(p->root, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "500\n");
  fake_limits(p, "unlimited            unlimited ", "65536                1048576", "0000000000000000");
}

static struct nic *add_efa(Patient *p, const char *device, const char *pci, int numa)
{
  struct nic *nic = lab_efa(p->lab, device, pci, numa ? "0 i fe80::b" : "0 i fe80::a");
  nic->numa = numa;
  nic->gbit_s = 100;
  nic->mtu = 8760;
  nic->region_max = 1ULL << 40;
  nic->srd_reads = TRUE;
  nic->srd_read_max = 1U << 30;
  nic->dmabuf = TRUE;
  return nic;
}

static void fake_pci_tree(Patient *p)
{
  static const struct fake_pci devices[] = {
      {"pci0000:00/0000:00:01.0", 0x8086, 1, 0x060400, 0x10, 0x10, 0, NULL},
      {"pci0000:00/0000:00:01.0/0000:10:1b.0", 0x1d0f, 0xefa1, 0x020000, 0, 0, 0, "efa"},
      {"pci0000:00/0000:00:01.0/0000:10:1c.0", 0x10de, 0x20b0, 0x030200, 0, 0, 0, "nvidia"},
      {"pci0000:80/0000:80:01.0", 0x8086, 1, 0x060400, 0x90, 0x90, 1, NULL},
      {"pci0000:80/0000:80:01.0/0000:90:1b.0", 0x1d0f, 0xefa1, 0x020000, 0, 0, 1, "efa"},
      {"pci0000:80/0000:80:01.0/0000:90:1c.0", 0x10de, 0x20b0, 0x030200, 0, 0, 1, "nvidia"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(devices); i++)
    fake_pci_device(p->root, &devices[i]);
  fake_file(p->root, "/sys/devices/pci0000:00/0000:00:01.0/0000:10:1b.0/infiniband/rdmap16s27/node_type",
            "7\n");
  fake_file(p->root, "/sys/devices/pci0000:80/0000:80:01.0/0000:90:1b.0/infiniband/rdmap144s27/node_type",
            "7\n");
}

static Patient *two_efa(void)
{
  Patient *p = patient_new();
  fake_host(p);
  fake_pci_tree(p);
  fake_file(p->root, "/sys/class/infiniband/rdmap16s27/node_type", "7: <unknown>\n");
  fake_file(p->root, "/sys/class/infiniband/rdmap144s27/node_type", "7: <unknown>\n");
  fake_file(p->root, "/sys/class/infiniband_verbs/abi_version", "6\n");
  fake_file(
      p->root, "/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@host)\n");
  add_efa(p, "rdmap16s27", "0000:10:1b.0", 0);
  add_efa(p, "rdmap144s27", "0000:90:1b.0", 1);
  lab_address(p->lab, "127.0.0.1/8", NULL);
  lab_address(p->lab, "172.31.0.5/20", NULL);
  lab_address(p->lab, "fe80::5/64", NULL);
  patient_add_gpu(p, "0000:10:1c.0", GPU_EXPORT_YES, NULL);
  patient_add_gpu(p, "0000:90:1c.0", GPU_EXPORT_YES, NULL);
  return p;
}

Test(doctor, two_efa)
{
  g_autoptr(Patient) p = two_efa();
  g_autoptr(Doctor) doctor = patient_examine(p);
  g_autofree char *text = doctor_said(doctor);
  expect_section(text, "machine",
                 "  kernel                  6.1.0-23-amd64\n"
                 "  processors              0-3 of 0-3, AMD EPYC 9R14\n"
                 "  memory                  2.05 GB, 1.02 GB available\n"
                 "  transparent huge pages  madvise\n"
                 "  locked memory           unlimited\n"
                 "  open files              65536 (may be raised to 1048576)\n"
                 "  IOMMU                   none\n");
  expect_section(text, "NUMA nodes",
                 "  node  processors     GB  GB free\n"
                 "  0     0-1          1.02     0.51\n"
                 "  1     2-3          1.02     0.51\n");
  expect_section(text, "huge pages",
                 "    page  in the pool  free\n"
                 "   2 MiB          512   500\n"
                 "   1 GiB            0     0\n");
  expect_section(text, "GPUs",
                 "  CUDA         13.0\n"
                 "  driver       580.65.06 (open kernel modules)\n"
                 "  peer memory  not loaded (not used: dma-bufs are)\n"
                 "  GPU  name                   GB     PCI           NUMA  driver  dma-buf\n"
                 "  0    NVIDIA A100-SXM4-40GB  42.00  0000:10:1c.0  0     nvidia  yes\n"
                 "  1    NVIDIA A100-SXM4-40GB  42.00  0000:90:1c.0  1     nvidia  yes\n");
  expect_section(text, "RDMA devices",
                 "  port           link  state        Gbit/s  MTU   netdev  PCI           NUMA  can\n"
                 "  rdmap16s27:1   EFA   PORT_ACTIVE  100     8760  -       0000:10:1b.0  0     SRD, RDMA "
                 "READ up to 1073741824 bytes, regions up to 1099.51 GB, dma-buf\n"
                 "  rdmap144s27:1  EFA   PORT_ACTIVE  100     8760  -       0000:90:1b.0  1     SRD, RDMA "
                 "READ up to 1073741824 bytes, regions up to 1099.51 GB, dma-buf\n"
                 "  port           GID  type  address\n"
                 "  rdmap16s27:1   0    IB    fe80::a\n"
                 "  rdmap144s27:1  0    IB    fe80::b\n");
  expect_section(text, "ways between GPUs and RDMA devices",
                 "  GPU 0 (0000:10:1c.0)  same switch      rdmap16s27:1\n"
                 "  GPU 0 (0000:10:1c.0)  other NUMA node  rdmap144s27:1\n"
                 "  GPU 1 (0000:90:1c.0)  same switch      rdmap144s27:1\n"
                 "  GPU 1 (0000:90:1c.0)  other NUMA node  rdmap16s27:1\n");
  g_autofree char *chosen = section(text, "what auto takes here");
  cr_expect(g_str_has_prefix(chosen, "  --device              cuda\n  --transport           "), "%s", chosen);
  cr_expect(g_str_has_suffix(chosen, "  RDMA on loopback      rdmap16s27:1 GID 0\n"
                                     "  RDMA from 172.31.0.5  rdmap16s27:1 GID 0, rdmap144s27:1 GID 0\n"
                                     "  gpudirect             can be had: [pipeline] path = gpudirect\n"),
            "%s", chosen);
  expect_section(text, "what to do", "  nothing: all that runs need is there\n");
}

static const char *string_at(yajl_val object, const char **path)
{
  yajl_val value = yajl_tree_get(object, path, yajl_t_string);
  return value ? value->u.string : "";
}

/* Twice the same, and the JSON says the same. */
Test(doctor, json)
{
  g_autoptr(Patient) p = two_efa();
  g_autoptr(Doctor) doctor = patient_examine(p);
  g_autofree char *once = doctor_wrote(doctor), *again = doctor_wrote(doctor);
  cr_assert_str_eq(once, again);
  char reason[256];
  yajl_val root = yajl_tree_parse(once, reason, sizeof reason);
  cr_assert(root, "%s", reason);
  yajl_val ports = yajl_tree_get(root, (const char *[]){"rdma", "ports", NULL}, yajl_t_array);
  cr_assert(ports && YAJL_GET_ARRAY(ports)->len == 2);
  yajl_val port = YAJL_GET_ARRAY(ports)->values[1];
  cr_assert_str_eq(string_at(port, (const char *[]){"device", NULL}), "rdmap144s27");
  yajl_val most = yajl_tree_get(port, (const char *[]){"srd_read_max_bytes", NULL}, yajl_t_number);
  cr_assert_eq(YAJL_GET_INTEGER(most), 1 << 30);
  yajl_val ways = yajl_tree_get(root, (const char *[]){"distances", NULL}, yajl_t_array);
  cr_assert(ways && YAJL_GET_ARRAY(ways)->len == 4);
  cr_assert_str_eq(string_at(root, (const char *[]){"machine", "locked_memory_bytes", "soft", NULL}),
                   "unlimited");
  yajl_val advice = yajl_tree_get(root, (const char *[]){"advice", NULL}, yajl_t_array);
  cr_assert(advice && YAJL_GET_ARRAY(advice)->len == 0);
  yajl_tree_free(root);
}

/* A GPU that rests may be slow, not narrow; a NIC must be neither. */
Test(doctor, slow_links)
{
  static const char *const file[][2] = {
      {"pci0000:00/0000:00:01.0/0000:10:1c.0/current_link_speed", "2.5 GT/s PCIe\n"},
      {"pci0000:00/0000:00:01.0/0000:10:1c.0/max_link_speed", "32.0 GT/s PCIe\n"},
      {"pci0000:80/0000:80:01.0/0000:90:1c.0/current_link_width", "8\n"},
      {"pci0000:80/0000:80:01.0/0000:90:1c.0/max_link_width", "16\n"},
      {"pci0000:00/0000:00:01.0/0000:10:1b.0/current_link_speed", "8.0 GT/s PCIe\n"},
      {"pci0000:00/0000:00:01.0/0000:10:1b.0/max_link_speed", "16.0 GT/s PCIe\n"},
      {"pci0000:80/0000:80:01.0/0000:90:1b.0/current_link_speed", "Unknown\n"},
      {"pci0000:80/0000:80:01.0/0000:90:1b.0/max_link_speed", "16.0 GT/s PCIe\n"},
  };
  g_autoptr(Patient) p = two_efa();
  for (size_t i = 0; i < G_N_ELEMENTS(file); i++) {
    g_autofree char *path = g_strconcat("/sys/devices/", file[i][0], NULL);
    fake_file(p->root, path, file[i][1]);
  }
  g_autoptr(Doctor) doctor = patient_examine(p);
  g_autofree char *text = doctor_said(doctor);
  expect_section(
      text, "what to do",
      "  PCIe: the GPU at 0000:90:1c.0 has 8 PCIe lanes, of 16\n"
      "    -> put the card into another slot; check with: lspci -vv -s 0000:90:1c.0 | grep LnkSta\n"
      "  PCIe: rdmap16s27 has a PCIe link of 8 GT/s a lane, of 16\n"
      "    -> put the card into another slot; check with: lspci -vv -s 0000:10:1b.0 | grep LnkSta\n");
}

/* --- a machine with RoCE and much amiss
 * ----------------------------------------------------------------------------*/

static Patient *sick_roce(void)
{
  Patient *p = patient_new();
  fake_host(p);
  fake_limits(p, "8388608              8388608  ", "1024                 2048   ", "0000000000000000");
  fake_file(p->root, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  fake_file(p->root, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n");
  fake_file(p->root, "/sys/fs/cgroup/memory.max", "1024000000\n");
  fake_file(p->root, "/sys/kernel/iommu_groups/0/type", "DMA-FQ\n");
  fake_file(p->root, "/sys/class/infiniband_verbs/uverbs7/ibdev", "hns_0\n");
  fake_file(p->root, "/sys/class/infiniband_verbs/uverbs8/ibdev", "hns_1\n");
  fake_file(p->root, "/dev/infiniband/uverbs7", "");
  fake_file(p->root, "/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
  fake_file(p->root, "/sys/class/infiniband/mlx5_1/node_type", "1: CA\n");
  fake_file(p->root, "/sys/class/infiniband/hns_0/node_type", "1: CA\n");
  fake_file(p->root, "/sys/class/infiniband/hns_1/node_type", "1: CA\n");
  fake_file(p->root, "/sys/class/infiniband/hns_2/node_type", "1: CA\n");
  fake_file(p->root, "/sys/class/infiniband/iwp0/node_type", "4: RNIC\n");
  static const struct fake_pci bare = {
      "pci0000:00/0000:00:05.0", 0x15b3, 0x101d, 0x020000, 0, 0, 0, "mlx5_core"};
  fake_pci_device(p->root, &bare);
  struct nic *up = lab_roce(p->lab, "mlx5_0", "", "0 1 fe80::1,1 2 fe80::1");
  up->mtu = 1024;
  up->reads_asked = up->reads_served = 16;
  up->region_max = G_MAXUINT64;
  g_strlcpy(up->netdev, "eth2", sizeof up->netdev);
  struct nic *down = lab_roce(p->lab, "mlx5_1", "", "");
  down->active = FALSE;
  down->mtu = 4096;
  g_strlcpy(down->state, "PORT_DOWN", sizeof down->state);
  g_strlcpy(down->netdev, "eth3", sizeof down->netdev);
  struct nic *waiting = lab_infiniband(p->lab, "mlx5_2", "", "0 i fe80::2");
  waiting->active = FALSE;
  g_strlcpy(waiting->state, "PORT_INIT", sizeof waiting->state);
  patient_add_gpu(p, "", GPU_EXPORT_NO, "the driver does not support it");
  return p;
}

Test(doctor, sick_roce)
{
  g_autoptr(Patient) p = sick_roce();
  g_autoptr(Doctor) doctor = patient_examine(p);
  g_autofree char *text = doctor_said(doctor);
  expect_section(
      text, "what to do",
      "  RDMA: hns_0: libibverbs has no provider for it, or it does not answer\n"
      "    -> apt-get install ibverbs-providers; then: ibv_devinfo -v\n"
      "  RDMA: hns_1: /dev/infiniband/uverbs8 is missing here\n"
      "    -> of a container: docker run --device=/dev/infiniband --cap-add=IPC_LOCK …; else: udevadm "
      "trigger\n"
      "  RDMA: hns_2: has no verbs device in this kernel\n"
      "    -> dmesg | grep -i -e infiniband -e uverbs\n"
      "  RDMA: iwp0: iWARP: connects only through its connection manager\n"
      "    -> use an InfiniBand, RoCE or EFA device, or --transport tcp\n"
      "  RDMA: 0000:00:05.0: can RDMA (15b3:101d), but the kernel makes no RDMA device of it; its driver is "
      "mlx5_core\n"
      "    -> modprobe mlx5_ib\n"
      "  RDMA: mlx5_0:1 has no GID with an IP address, so no route leads to it\n"
      "    -> ip address add ADDRESS/BITS dev eth2\n"
      "  RDMA: mlx5_0:1 carries 1024 bytes a packet, of at most 4096\n"
      "    -> ip link set eth2 mtu 9000 (on all hosts; switches must carry it)\n"
      "  RDMA: mlx5_1:1 is PORT_DOWN\n"
      "    -> ip link set eth3 up; if it stays so: is its cable in?\n"
      "  RDMA: mlx5_2:1 is PORT_INIT\n"
      "    -> no subnet manager has set it up; on one host of the fabric: systemctl start opensm\n"
      "  GPUDirect: GPU memory cannot be exported as a dma-buf\n"
      "    -> install the driver's open kernel modules: apt-get install nvidia-open; until then: [pipeline] "
      "path = host\n"
      "  GPUDirect: the IOMMU translates addresses: reads into GPU memory may be slow, or fail\n"
      "    -> add iommu=pt to GRUB_CMDLINE_LINUX in /etc/default/grub, then: update-grub && reboot\n"
      "  huge pages: arenas get 4 KiB pages: registering them takes long, and NICs look up more addresses\n"
      "    -> echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\n"
      "  locked memory: at most 0.008 GB may be locked: larger arenas cannot be registered for RDMA\n"
      "    -> echo '* - memlock unlimited' >> /etc/security/limits.d/rdma.conf, then log in again (systemd: "
      "LimitMEMLOCK=infinity)\n"
      "  open files: at most 1024: a controller or memory server of a large cluster has more connections\n"
      "    -> ulimit -n 2048 (more: nofile in /etc/security/limits.d)\n"
      "  memory: this container may have 1.02 GB of the machine's 2.05 GB\n"
      "    -> keep arenas below that (host_cache_gb, staging_gb), or: docker run --memory=…\n");
  g_autofree char *machine = section(text, "machine"), *gpus = section(text, "GPUs"),
                  *rdma = section(text, "RDMA devices");
  cr_expect(strstr(machine,
                   "  memory                  2.05 GB, 1.02 GB available; this container: at most 1.02 GB\n"),
            "%s", machine);
  cr_expect(strstr(machine, "  locked memory           8.388608 MB\n"), "%s", machine);
  cr_expect(strstr(gpus, "no (the driver does not support it)\n"), "%s", gpus);
  cr_expect(strstr(rdma, "RC, 16 reads asked, 16 served, regions of any size, no dma-buf\n"), "%s", rdma);
  cr_expect(g_str_has_suffix(rdma,
                             "\n  hns_0         libibverbs has no provider for it, or it does not answer\n"
                             "  hns_1         /dev/infiniband/uverbs8 is missing here\n"
                             "  hns_2         has no verbs device in this kernel\n"
                             "  iwp0          iWARP: connects only through its connection manager\n"
                             "  0000:00:05.0  can RDMA (15b3:101d), but the kernel makes no RDMA device of "
                             "it; its driver is mlx5_core\n"),
            "%s", rdma);
}

/* CAP_IPC_LOCK lifts the limit; without ib_uverbs nothing else counts. */
Test(doctor, capability_and_module)
{
  g_autoptr(Patient) p = patient_new();
  fake_host(p);
  fake_limits(p, "8388608              unlimited", "1048576              1048576", "0000000000004000");
  fake_file(p->root, "/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
  lab_roce(p->lab, "rxe0", "", "1 2 10.0.0.1")->dmabuf = TRUE;
  g_autoptr(Doctor) doctor = patient_examine(p);
  g_autofree char *text = doctor_said(doctor);
  expect_section(text, "what to do",
                 "  GPU: CUDA cannot be used: no CUDA driver\n"
                 "    -> none is needed for --device host; with a GPU: nvidia-smi shows if its driver runs\n"
                 "  RDMA: mlx5_0: kernel module ib_uverbs is not loaded\n"
                 "    -> modprobe ib_uverbs\n");
  cr_expect(strstr(text, "8.388608 MB (may be raised); CAP_IPC_LOCK lifts it\n"), "%s", text);
}

/* --- no RDMA
 * -----------------------------------------------------------------------------------------------------*/

Test(doctor, no_rdma)
{
  g_autoptr(Patient) p = patient_new();
  fake_host(p);
  static const struct fake_pci gpu = {"pci0000:00/0000:00:06.0", 0x10de, 0x2335, 0x030200, 0, 0, 1, NULL};
  fake_pci_device(p->root, &gpu);
  g_autoptr(Doctor) before = patient_examine(p);
  g_autofree char *bare = doctor_said(before);
  expect_section(bare, "RDMA devices", "  none that can be used\n");
  expect_section(bare, "GPUs",
                 "  CUDA         none: no CUDA driver\n"
                 "  peer memory  not loaded (not used: dma-bufs are)\n"
                 "  GPU  name  GB  PCI           NUMA  driver  dma-buf\n"
                 "  -    -     -   0000:00:06.0  1     -       unknown\n");
  expect_section(
      bare, "what to do",
      "  GPU: 1 GPU on PCI, but CUDA cannot be used: no CUDA driver\n"
      "    -> install NVIDIA's driver, then: modprobe nvidia; check with: nvidia-smi\n"
      "  RDMA: no RDMA device: runs use TCP, which takes processors on both sides\n"
      "    -> nothing, if there is no such hardware (no rdma_rxe among this kernel's modules either)\n");
  fake_file(p->root, "/lib/modules/6.1.0-23-amd64/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz", "");
  fake_file(p->root, "/sys/class/net/lo/type", "772\n");
  fake_file(p->root, "/sys/class/net/lo/operstate", "unknown\n");
  fake_file(p->root, "/sys/class/net/eth0/type", "1\n");
  fake_file(p->root, "/sys/class/net/eth0/operstate", "down\n");
  fake_file(p->root, "/sys/class/net/eth1/type", "1\n");
  fake_file(p->root, "/sys/class/net/eth1/operstate", "up\n");
  p->cuda_missing = "built without nvcc";
  g_autoptr(Doctor) after = patient_examine(p);
  g_autofree char *soft = doctor_said(after);
  expect_section(
      soft, "what to do",
      "  GPU: 1 GPU on PCI, but CUDA cannot be used: built without nvcc\n"
      "    -> install the CUDA toolkit, then: make NVCC=/usr/local/cuda/bin/nvcc\n"
      "  RDMA: no RDMA device: runs use TCP, which takes processors on both sides\n"
      "    -> to try verbs in software: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth1\n");
}
