/* Payloads of the control plane: what goes in comes out, and whatever else a peer sends comes to nothing. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/control_frame.h"
#include "backend_real/run_spec.h"
#include "backend_real/transport.h"

/* Every prefix, and every byte changed, is refused or parses into something. */
static void mangle(GBytes *bytes, gboolean (*parses)(const uint8_t *data, size_t size))
{
  gsize size;
  const uint8_t *data = g_bytes_get_data(bytes, &size);
  g_autofree uint8_t *copy = g_memdup2(data, size);
  for (gsize length = 0; length < size; length++)
    parses(copy, length);
  for (gsize at = 0; at < size; at++)
    for (unsigned bit = 0; bit < 8; bit++) {
      copy[at] ^= (uint8_t)(1U << bit);
      parses(copy, size);
      copy[at] ^= (uint8_t)(1U << bit);
    }
}

static gboolean parses_spec(const uint8_t *data, size_t size)
{
  struct run_spec spec;
  gboolean good = run_spec_unpack(data, size, &spec);
  run_spec_clear(&spec);
  return good;
}

Test(run_spec, a_run_survives_the_wire)
{
  char *sets[] = {(char *)"workload.rate_rps=3", (char *)"experiment.seed=9", NULL};
  struct run_spec spec = {.run = 7,
                          .experiment = (char *)"experiments/\xff.ini", /* a path is bytes */
                          .system = (char *)"distmind",
                          .sets = sets,
                          .device = (char *)"host",
                          .transport = (char *)"tcp",
                          .pace_gbit_s = 2.5,
                          .image_folder = (char *)"",
                          .share_gpus = TRUE};
  g_autoptr(GBytes) bytes = run_spec_pack(&spec);
  struct run_spec back;
  gsize size;
  const uint8_t *data = g_bytes_get_data(bytes, &size);
  cr_assert(run_spec_unpack(data, size, &back));
  cr_expect_eq(back.run, 7);
  cr_expect_str_eq(back.experiment, spec.experiment);
  cr_expect_str_eq(back.system, spec.system);
  cr_expect(g_strv_equal((const char *const *)back.sets, (const char *const *)sets));
  cr_expect_str_eq(back.device, "host");
  cr_expect_str_eq(back.transport, "tcp");
  cr_expect_eq(back.pace_gbit_s, 2.5);
  cr_expect_str_eq(back.image_folder, "");
  cr_expect(back.share_gpus && !back.records);
  run_spec_clear(&back);
  mangle(bytes, parses_spec);
}

static gboolean parses_meter(const uint8_t *data, size_t size)
{
  struct run_meter meter;
  return run_meter_unpack(data, size, &meter);
}

Test(run_spec, a_meter_survives_the_wire)
{
  struct run_meter meter = {.run = 1,
                            .number = 2,
                            .jobs_left = 3,
                            .jobs_seen = 4,
                            .usage = {.gpu_inference_ns = 5,
                                      .gpu_training_ns = 6,
                                      .gpu_any_ns = 7,
                                      .gpu_held_ns = 8,
                                      .gpu_there_ns = 9,
                                      .net_bytes = 10,
                                      .pcie_bytes = 11,
                                      .process_starts = 12,
                                      .evictions = 13,
                                      .training_steps = 14,
                                      .queue = 15,
                                      .jobs_done = 16,
                                      .host_bytes = 17,
                                      .pool_bytes = 18},
                            .failure = "a wrong byte"};
  for (int i = 0; i < LOAD_SOURCES; i++)
    meter.usage.loads[i] = 20 + (uint64_t)i;
  g_autoptr(GBytes) bytes = run_meter_pack(&meter);
  struct run_meter back;
  gsize size;
  const uint8_t *data = g_bytes_get_data(bytes, &size);
  cr_assert(run_meter_unpack(data, size, &back));
  cr_expect_eq(memcmp(&back, &meter, sizeof meter), 0);
  mangle(bytes, parses_meter);
}

static struct run_meter meter_there_and_back(const char *failure)
{
  struct run_meter meter = {.number = 1}, back;
  g_strlcpy(meter.failure, failure, sizeof meter.failure);
  g_autoptr(GBytes) bytes = run_meter_pack(&meter);
  gsize size;
  const uint8_t *data = g_bytes_get_data(bytes, &size);
  cr_assert(run_meter_unpack(data, size, &back));
  return back;
}

/* Texts of what failed hold paths and what libraries say: any bytes, of any length. */
Test(run_spec, texts_of_any_bytes_survive_the_wire)
{
  char text[2 * FAILURE_BYTES];
  struct run_meter back = meter_there_and_back("/models/\xff.dmi: cannot be read");
  cr_expect_str_eq(back.failure, "/models/\xef\xbf\xbd.dmi: cannot be read");
  for (gsize before = 0; before < 4; before++) { /* the cut falls on each byte of a character */
    memset(text, 'a', before);
    text[before] = '\0';
    while (strlen(text) < FAILURE_BYTES + 8)
      g_strlcat(text, "\xe2\x82\xac", sizeof text);
    back = meter_there_and_back(text);
    cr_expect(g_utf8_validate(back.failure, -1, NULL) && g_str_has_prefix(text, back.failure));
    cr_expect_geq(strlen(back.failure), FAILURE_BYTES - 4, "%zu", strlen(back.failure));
  }
}

Test(run_spec, texts_are_cut_to_what_a_frame_holds)
{
  g_autofree char *text = g_strnfill(200000, 'a');
  char address[108];
  memset(address, 'b', sizeof address - 1);
  address[sizeof address - 1] = '\0';
  struct run_ready ready = {.run = 1, .address = address, .text = text}, back;
  text[7] = '\xff';
  g_autoptr(GBytes) bytes = run_ready_pack(&ready), failed = run_failed_pack(1, text);
  gsize size;
  const uint8_t *data = g_bytes_get_data(bytes, &size);
  cr_expect_leq(size, frame_payload_max(FRAME_READY));
  cr_expect_geq(size, frame_payload_max(FRAME_READY) - 256);
  cr_assert(run_ready_unpack(data, size, &back));
  cr_expect(g_str_has_prefix(back.text, "aaaaaaa\xef\xbf\xbd"
                                        "aaa"));
  cr_expect_str_eq(back.address, address);
  run_ready_clear(&back);
  cr_expect_leq(g_bytes_get_size(failed), frame_payload_max(FRAME_FAILED));
}

static gboolean parses_peers(const uint8_t *data, size_t size)
{
  uint32_t run;
  g_autoptr(GArray) peers = run_peers_unpack(data, size, &run);
  return peers != NULL;
}

Test(run_spec, peers_survive_the_wire)
{
  g_autoptr(GArray) peers = g_array_new(FALSE, TRUE, sizeof(struct run_peer));
  for (uint32_t i = 0; i < 3; i++) {
    struct run_peer peer = {.server = i * 5};
    g_snprintf(peer.address, sizeof peer.address, "10.0.0.%u:99", i);
    memset(peer.secret.key, (int)i + 1, sizeof peer.secret.key);
    g_array_append_val(peers, peer);
  }
  g_autoptr(GBytes) bytes = run_peers_pack(11, peers);
  gsize size;
  const uint8_t *data = g_bytes_get_data(bytes, &size);
  uint32_t run;
  g_autoptr(GArray) back = run_peers_unpack(data, size, &run);
  cr_assert_not_null(back);
  cr_expect_eq(run, 11);
  cr_assert_eq(back->len, 3);
  cr_expect_eq(memcmp(back->data, peers->data, 3 * sizeof(struct run_peer)), 0);
  mangle(bytes, parses_peers);
}

Test(run_spec, a_peer_of_no_pool_is_refused)
{
  g_autoptr(GArray) peers = g_array_new(FALSE, TRUE, sizeof(struct run_peer));
  struct run_peer peer = {.server = MEMORY_SERVERS_MAX, .address = "h:1"};
  g_array_append_val(peers, peer);
  g_autoptr(GBytes) bytes = run_peers_pack(1, peers);
  gsize size;
  const uint8_t *data = g_bytes_get_data(bytes, &size);
  cr_expect(!parses_peers(data, size));
}

Test(run_spec, a_letter_survives_the_wire)
{
  uint8_t bytes[LETTER_BYTES_MAX + 1];
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (uint8_t)(i * 7);
  const size_t sizes[] = {0, 1, LETTER_BYTES_MAX, LETTER_BYTES_MAX + 1};
  for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
    const struct run_letter letter = {
        .run = 3, .peer = ACTOR(ACTOR_MEMORY_SERVER, 2), .to_shelf = TRUE, .bytes = bytes, .size = sizes[i]};
    struct run_letter read;
    g_autoptr(GVariant) hold = NULL;
    g_autoptr(GBytes) wire = run_letter_pack(&letter);
    gsize size;
    const uint8_t *data = g_bytes_get_data(wire, &size);
    gboolean good = run_letter_unpack(data, size, &read, &hold);
    cr_assert_eq(good, sizes[i] <= LETTER_BYTES_MAX, "%zu bytes", sizes[i]);
    if (!good)
      continue;
    cr_expect(read.run == 3 && read.peer == letter.peer && read.to_shelf && read.size == sizes[i]);
    cr_expect(sizes[i] == 0 || memcmp(read.bytes, bytes, sizes[i]) == 0);
    cr_expect_leq(size, frame_payload_max(FRAME_LETTER));
  }
}
