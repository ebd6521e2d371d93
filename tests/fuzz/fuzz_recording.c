/* Recordings, read and fed to the core. First byte: bit 0 set: the rest is a file. Else the rest is the
 * entries of a part, around which a head and blocks with right checksums are put: of the actor that bits 1
 * and 2 name, bit 3 set: where loads land in GPU memory. A wrong recording is an error, whatever it says; it
 * never leads an actor astray. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend_sim/rerun.h"
#include "core/error.h"
#include "harness/experiment_parts.h"
#include "harness/recording_block.h"

static const char experiment[] = "[experiment]\nname = rerun\nsystems = distmind\n"
                                 "[cluster]\nhardware = loopback\nmemory_hardware = loopback\n"
                                 "gpu_servers = 2\ngpus_per_server = 2\nmemory_servers = 3\n"
                                 "gpu_model_gb = 0.03\nhost_cache_gb = 0.03\nheartbeat_ms = 20\n"
                                 "[models]\nsmall_net = 6\nwide_net = 3\n"
                                 "[pipeline]\nreplicas = 2\n"
                                 "[training]\nmodel = small_net\nbatch_ms = 3\n"
                                 "[workload]\nkind = poisson\nrate_rps = 100\nduration_s = 1\n"
                                 "[events]\nmore = at 0.5 add memory_server 1\n";

/* As --set gives them, of either path. */
static const char *const overrides[2] = {"", "pipeline.path=gpudirect"};

static uint64_t experiment_digest(gboolean direct)
{
  static uint64_t digest[2];
  char *sets[] = {(char *)overrides[1], NULL};
  if (digest[direct] != 0)
    return digest[direct];
  g_autoptr(Keyfile) keyfile = keyfile_parse("rerun.ini", experiment, strlen(experiment), NULL);
  g_autoptr(Experiment) e = experiment_parse(keyfile, "distmind", direct ? sets : NULL, NULL);
  g_autoptr(Setup) setup = setup_new(e, WORLD_GPUDIRECT, TRUE, NULL);
  g_assert(setup);
  digest[direct] = setup_digest(setup);
  return digest[direct];
}

static void put(int fd, const void *data, size_t size)
{
  g_assert(write(fd, data, size) == (ssize_t)size);
}

static void put_block(int fd, const uint8_t *payload, size_t size, uint32_t flags)
{
  uint8_t block[BLOCK_HEADER + RECORDING_BLOCK];
  if (size > 0)
    memcpy(block + BLOCK_HEADER, payload, size);
  block_seal(block, (uint32_t)size, flags);
  put(fd, block, BLOCK_HEADER + size);
}

static void put_part(int fd, unsigned actor, gboolean direct, const uint8_t *entries, size_t size)
{
  static const actor_id actors[] = {ACTOR(ACTOR_CLIENT, 0), ACTOR(ACTOR_CONTROLLER, 0),
                                    ACTOR(ACTOR_GPU_SERVER, 1), ACTOR(ACTOR_MEMORY_SERVER, 2)};
  struct recording_head head = {.version = (char *)"0",
                                .run = 1,
                                .actor = actors[actor],
                                .path = (char *)"rerun.ini",
                                .text = (char *)experiment,
                                .system = (char *)"distmind",
                                .overrides = (char *)overrides[direct],
                                .digest = experiment_digest(direct),
                                .capabilities = WORLD_GPUDIRECT,
                                .heartbeats = TRUE,
                                .records = TRUE,
                                .gpus = 2};
  struct octets form = {0}, entry = {0};
  recording_head_write(&form, &head);
  octets_number(&entry, RECORDING_HEAD);
  octets_number(&entry, form.size);
  octets_bytes(&entry, form.data, form.size);
  put_block(fd, entry.data, entry.size, RECORDING_BEGINS);
  for (size_t at = 0; at < size; at += RECORDING_BLOCK)
    put_block(fd, entries + at, MIN(size - at, RECORDING_BLOCK), 0);
  g_free(form.data);
  g_free(entry.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  uint8_t header[FILE_HEADER];
  struct rerun_totals totals = {0};
  g_autoptr(GError) error = NULL;
  if (size == 0)
    return 0;
  int fd = memfd_create("recording", MFD_CLOEXEC);
  g_assert(fd >= 0);
  g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
  if (data[0] & 1) {
    put(fd, data + 1, size - 1);
  } else {
    file_header_write(header, RECORDING_PROCESS);
    put(fd, header, sizeof header);
    put_part(fd, data[0] >> 1 & 3, data[0] >> 3 & 1, data + 1, size - 1);
  }
  gboolean good = rerun_file(path, &totals, NULL, &error);
  g_assert(good == (error == NULL));
  g_assert(good || (error->domain == DM_ERROR && !strchr(error->message, '\n')));
  close(fd);
  return 0;
}
