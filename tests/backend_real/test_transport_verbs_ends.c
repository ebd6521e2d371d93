/* Ends of the verbs transport: where reads land, which devices they go by, limits of memory, the other end's
 * death; over the first RDMA devices, where there are some (see tests/rxe). */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_real/verbs_memory.h"
#include "core/error.h"
#include "verbs_lab.h"

#define MIB (1U << 20)

/* --- where reads land
 * ----------------------------------------------------------------------------------------------*/

VERBS_TEST(transport_verbs_ends, reads_cross_the_chunks_of_an_arena, 1)
{
  const uint64_t chunk = VERBS_CHUNK_BYTES;
  struct lab *lab = transport_lab_new(ops, 4 * MIB, chunk + 2 * MIB, NULL);
  verbs_lab_serve(lab, 1, MIB);
  static const uint32_t before[] = {1, 4096, MIB / 2, MIB - 1};
  for (uint32_t i = 0; i < G_N_ELEMENTS(before); i++) {
    memset(lab->to.base + chunk - MIB, LAB_BLANK, 2 * MIB);
    lab_read(lab, 1, 0, chunk - before[i], MIB, i);
    lab_wait(lab, i + 1);
    cr_assert_eq(lab_end(lab, i), LAB_GOOD);
    cr_assert(lab_has(lab, 1, 0, chunk - before[i], MIB));
    cr_assert(lab_blank(lab, chunk - MIB, MIB - before[i]));
  }
  transport_lab_free(lab);
}

/* GPU memory that has an address is as any other; that which has none takes a driver with dma-buf. */
VERBS_TEST(transport_verbs_ends, reads_into_gpu_memory, 1)
{
  struct lab *lab = verbs_lab_new();
  struct memory gpu[2] = {{g_malloc0(MIB), MIB}, {g_malloc0(MIB), MIB}};
  struct reader_config config = lab_reader_config(lab, NULL);
  config.gpu_memory = gpu;
  config.gpus = 2;
  ops->reader_free(lab->reader);
  g_autoptr(GError) error = NULL;
  lab->reader = ops->reader_new(&config, &error);
  cr_assert(lab->reader, "%s", error ? error->message : "");
  ops->reader_peer(lab->reader, LAB_SHELF, ops->shelf_address(lab->shelf), &lab->secret);
  lab_pump(lab);
  ops->reader_read(
      lab->reader,
      &(struct transport_read){
          .server = LAB_SHELF, .model = 1, .offset = 10, .gpu = 1, .to = 1000, .bytes = 5000, .tag = 0});
  ops->reader_read(lab->reader, &(struct transport_read){.server = LAB_SHELF,
                                                         .model = 1,
                                                         .offset = 10,
                                                         .gpu = 0,
                                                         .to = MIB - 4999,
                                                         .bytes = 5000,
                                                         .tag = 1});
  ops->reader_read(
      lab->reader,
      &(struct transport_read){
          .server = LAB_SHELF, .model = 1, .offset = 10, .gpu = 2, .to = 0, .bytes = 5000, .tag = 2});
  lab_wait(lab, 3);
  cr_assert_eq(lab_end(lab, 0), LAB_GOOD);
  cr_assert_eq(lab_end(lab, 1), LAB_FAILED);
  cr_assert_eq(lab_end(lab, 2), LAB_FAILED);
  for (uint32_t i = 0; i < 5000; i++)
    cr_assert_eq(gpu[1].base[1000 + i], lab_byte(1, 10 + i));
  cr_assert_eq(gpu[1].base[999] | gpu[1].base[6000] | gpu[0].base[MIB - 1], 0);
  struct memory none = {.base = NULL, .bytes = MIB, .dmabuf = -1};
  config.gpu_memory = &none;
  config.gpus = 1;
  cr_assert_null(ops->reader_new(&config, &error));
  cr_assert(strstr(error->message, "dma-buf"), "%s", error->message);
  transport_lab_free(lab);
  g_free(gpu[0].base);
  g_free(gpu[1].base);
}

/* --- devices
 * -------------------------------------------------------------------------------------------------------*/

/* Each end by the device of its own, and both by both: lines are spread over them. */
VERBS_TEST(transport_verbs_ends, several_devices, 2)
{
  g_autoptr(GPtrArray) nics = nics_list();
  const struct nic *a = g_ptr_array_index(nics, 0), *b = g_ptr_array_index(nics, 1);
  g_autofree char *both = g_strdup_printf("%s:%u,%s:%u", a->device, a->port, b->device, b->port);
  const struct transport_options first = {.rdma_device = a->device}, second = {.rdma_device = b->device},
                                 two = {.rdma_device = both, .connections = 3};
  const struct transport_options *ends[][2] = {
      {&first, &second}, {&two, &two}, {&two, &first}, {&first, &two}};
  for (uint32_t i = 0; i < G_N_ELEMENTS(ends); i++) {
    struct lab *lab = lab_new_reader(ops, 8 * MIB, 8 * MIB, ends[i][0]);
    struct transport_state state;
    lab_open_shelf(lab, "127.0.0.1:0", ends[i][1]);
    struct ranges place = lab_serve(lab, 1, 0, 4 * MIB, 128 * 1024);
    for (uint32_t r = 0; r < 4; r++)
      lab_read(lab, 1, (uint64_t)r * MIB, (uint64_t)r * MIB, MIB, r);
    lab_wait(lab, 4);
    cr_assert_eq(lab->good, 4, "ends %u", i);
    cr_assert(lab_has(lab, 1, 0, 0, 4 * MIB));
    ops->reader_state(lab->reader, &state);
    cr_assert_geq(state.connections, 2);
    g_free(place.range);
    transport_lab_free(lab);
  }
}

VERBS_TEST(transport_verbs_ends, devices_that_are_not_there, 1)
{
  struct lab *lab = verbs_lab_new();
  static const struct transport_options wrong[] = {
      {.rdma_device = "no_such_device"}, {.rdma_device = ""}, {.gid_given = TRUE, .gid_index = 4000}};
  for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
    g_autoptr(GError) error = NULL, of_shelf = NULL;
    struct reader_config reader = lab_reader_config(lab, &wrong[i]);
    struct shelf_config shelf = lab_shelf_config(lab, "127.0.0.1:0", &wrong[i]);
    cr_expect_null(ops->reader_new(&reader, &error));
    cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT), "%u", i);
    cr_expect_null(ops->shelf_new(&shelf, &of_shelf));
    cr_expect(g_error_matches(of_shelf, DM_ERROR, DM_ERROR_INPUT), "%u", i);
  }
  transport_lab_free(lab);
}

/* --- limits
 * --------------------------------------------------------------------------------------------------------*/

static void run_limited(struct lab *lab)
{
  struct rlimit limit = {65536, 65536};
  struct reader_config reader = lab_reader_config(lab, NULL);
  g_autoptr(GError) error = NULL;
  /* Root is above the limit by a capability that its memory's owner may give up for good. */
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  struct {
    uint32_t effective, permitted, inheritable;
  } none[2] = {{0}};
  if (syscall(SYS_capset, &header, none) != 0 || setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
    _exit(1);
  if (lab->ops->reader_new(&reader, &error) || !strstr(error->message, "ulimit -l"))
    _exit(2);
  struct shelf_config config = lab_shelf_config(lab, "127.0.0.1:0", NULL);
  struct shelf *shelf = lab->ops->shelf_new(&config, NULL);
  struct range range = {0, 4 * MIB};
  if (!shelf || lab->ops->shelf_failure(shelf))
    _exit(3);
  lab->ops->shelf_serve(shelf, 1, 0, 4 * MIB, &(struct ranges){.range = &range, .count = 1});
  const char *failure = lab->ops->shelf_failure(shelf);
  if (!failure || !strstr(failure, "LimitMEMLOCK"))
    _exit(4);
  lab->ops->shelf_free(shelf);
  _exit(0);
}

/* Where memory must not be locked, whoever opens an end is told what to do about it. */
VERBS_TEST(transport_verbs_ends, limits_of_locked_memory, 1)
{
  struct lab lab = {.ops = ops, .remote = -1};
  lab.from = lab.to = (struct memory){g_malloc0(8 * MIB), 8 * MIB};
  int status = 0;
  pid_t child = fork();
  if (child == 0)
    run_limited(&lab);
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
  g_free(lab.from.base);
}

/* --- death
 * ---------------------------------------------------------------------------------------------------------*/

/* Reads of a process that was killed end soon after. */
VERBS_TEST(transport_verbs_ends, a_killed_shelf_is_noticed, 1)
{
  enum { UNDER_WAY = 16 };
  char address[64];
  pid_t child;
  struct lab *lab = lab_new_apart(ops, UNDER_WAY * MIB, MIB, NULL, &child, address);
  gint64 killed = 0;
  uint32_t asked = 0;
  ops->reader_peer(lab->reader, LAB_SHELF, address, &lab->secret);
  while (lab->failed == 0 && asked < LAB_READS - UNDER_WAY) {
    for (uint32_t until = lab_ended(lab) + UNDER_WAY; asked < until; asked++)
      lab_read(lab, 1, 0, asked % UNDER_WAY * (uint64_t)MIB, MIB, asked);
    lab_wait(lab, asked - UNDER_WAY + 1);
    if (!killed && lab->good >= UNDER_WAY) {
      kill(child, SIGKILL);
      cr_assert_eq(waitpid(child, NULL, 0), child);
      killed = g_get_monotonic_time();
    }
  }
  double seconds = (double)(g_get_monotonic_time() - killed) * 1e-6;
  cr_log_info("noticed %.2f s after, %u reads", seconds, asked);
  cr_expect_gt(lab->failed, 0);
  cr_expect_lt(seconds, 10); /* 0.5 s where nothing is emulated */
  transport_lab_free(lab);
}
