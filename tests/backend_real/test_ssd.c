/* Model files on an SSD: every byte of every read, whatever its alignment; what is wrong with a file is found
 * before or while it is read; the store writes what is missing and nothing else; the reader ends each read
 * once. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_real/ssd_reader.h"
#include "backend_real/ssd_store.h"
#include "core/error.h"
#include "safetensors_file.h"

#define LAYERS 7
#ifdef __SANITIZE_THREAD__
#define ROUNDS 60
#else
#define ROUNDS 400
#endif
#define MEMORY_BYTES (SSD_READ_MAX + 3 * SSD_BLOCK)

struct bench {
  char *folder, *path;
  struct catalog *catalog;
  struct image *image;
  uint8_t *memory, *bounce; /* pages: MEMORY_BYTES, and what a read wants */
  uint8_t *guard;           /* [MEMORY_BYTES] what lies in memory where nothing was read */
  uint8_t *raw[2];
};

static uint8_t *pages(uint8_t **raw, gsize bytes)
{
  *raw = g_malloc(bytes + SSD_BLOCK);
  return (uint8_t *)(((uintptr_t)*raw + SSD_BLOCK - 1) & ~(uintptr_t)(SSD_BLOCK - 1));
}

/* Two variants; layers whose bytes are no multiples of anything, one without any. */
static struct catalog *odd_catalog(uint64_t scale)
{
  struct profile *profile = profile_new("odd", LAYERS);
  for (uint32_t l = 0; l < LAYERS; l++) {
    profile->layer_bytes[l] = l == 3 ? 0 : (l * 411007 + 5) * scale;
    profile->timing[0].layer_ns[l] = 1000;
  }
  profile_sum(profile);
  profile_scale(profile, 0, 7000);
  struct catalog *catalog = catalog_new(1);
  catalog_add(catalog, profile, 2);
  return catalog;
}

static void bench_open(struct bench *b, const char *folder)
{
  g_autoptr(GError) error = NULL;
  *b = (struct bench){.folder = g_strdup(folder), .path = g_build_filename(folder, "odd-0.dmi", NULL)};
  b->catalog = odd_catalog(1);
  b->image = image_generate(catalog_profile(b->catalog, 0), 11);
  b->memory = pages(&b->raw[0], MEMORY_BYTES);
  b->guard = g_malloc(MEMORY_BYTES);
  memset(b->guard, 0xA5, MEMORY_BYTES);
  b->bounce = pages(&b->raw[1], SSD_BOUNCE_BYTES);
  cr_assert(ssd_file_write(b->path, b->image, &error), "%s", error ? error->message : "");
}

static void bench_close(struct bench *b)
{
  image_free(b->image);
  catalog_free(b->catalog);
  g_free(b->folder);
  g_free(b->path);
  g_free(b->guard);
  g_free(b->raw[0]);
  g_free(b->raw[1]);
}

/* --- reading
 * --------------------------------------------------------------------------------------------------------*/

static void expect_read(struct bench *b, const struct ssd_file *file, uint64_t offset, uint32_t bytes,
                        uint32_t shift)
{
  g_autoptr(GError) error = NULL;
  g_autofree uint8_t *wants = g_malloc(bytes);
  uint8_t *to = b->memory + SSD_BLOCK + shift;
  memcpy(b->memory, b->guard, MEMORY_BYTES);
  image_read(b->image, offset, bytes, wants);
  cr_assert(ssd_file_read(file, offset, bytes, to, b->bounce, &error), "%s", error ? error->message : "");
  cr_assert_eq(memcmp(to, wants, bytes), 0, "offset %u, %u bytes, shift %u", (guint)offset, bytes, shift);
  const uint8_t *end = b->memory + MEMORY_BYTES;
  cr_assert_eq(memcmp(b->memory, b->guard, SSD_BLOCK + shift), 0, "offset %u, %u bytes, shift %u: before it",
               (guint)offset, bytes, shift);
  cr_assert_eq(memcmp(to + bytes, b->guard, (size_t)(end - to) - bytes), 0,
               "offset %u, %u bytes, shift %u: after it", (guint)offset, bytes, shift);
}

/* To places aligned as the file is, and to others; across ends of blocks, of the file, within one block. */
static void read_everywhere(const char *folder, gboolean direct)
{
  struct bench b;
  g_autoptr(GError) error = NULL;
  g_autoptr(GRand) random = g_rand_new_with_seed(7);
  bench_open(&b, folder);
  struct ssd_file *file = ssd_file_open(b.path, b.image, &error);
  cr_assert_not_null(file, "%s", error ? error->message : "");
  if (!direct)
    cr_assert_not(ssd_file_direct(file));
  uint64_t end = image_bytes(b.image);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    uint64_t offset = i % 7 == 0 ? end - 1 - g_rand_int(random) % 9000 : g_rand_int(random) % end;
    uint64_t most = MIN(SSD_READ_MAX, end - offset);
    uint32_t bytes = i % 3 == 0 ? (uint32_t)most : 1 + g_rand_int(random) % (uint32_t)MIN(most, 20000);
    uint32_t shift = i % 4 == 0 ? g_rand_int(random) % SSD_BLOCK : (uint32_t)(offset % SSD_BLOCK);
    expect_read(&b, file, offset, bytes, shift);
  }
  ssd_file_free(file);
  bench_close(&b);
}

Test(ssd, every_byte_at_every_alignment)
{
  g_autoptr(Scratch) folder = scratch_new();
  read_everywhere(folder, TRUE);
}

/* In memory, for this process alone; FALSE: not allowed here. The mount ends with the process. */
static gboolean mount_ramfs(const char *folder)
{
  return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
         mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("none", folder, "ramfs", 0, NULL) == 0;
}

Test(ssd, every_byte_through_the_page_cache)
{
  g_autoptr(Scratch) folder = scratch_new();
  if (!mount_ramfs(folder))
    cr_skip_test("a file system without O_DIRECT cannot be had here");
  read_everywhere(folder, FALSE);
  umount(folder);
}

Test(ssd, a_file_that_becomes_shorter_is_an_error_where_it_ends)
{
  g_autoptr(Scratch) folder = scratch_new();
  struct bench b;
  bench_open(&b, folder);
  struct ssd_file *file = ssd_file_open(b.path, b.image, NULL);
  struct stat status;
  cr_assert(file && stat(b.path, &status) == 0);
  uint64_t data = (uint64_t)status.st_size - image_bytes(b.image), left = 700001;
  cr_assert_eq(truncate(b.path, (off_t)(data + left)), 0);
  expect_read(&b, file, 0, (uint32_t)left, 0);
  expect_read(&b, file, left - 10, 10, 17);
  for (uint32_t shift = 0; shift < 2; shift++) {
    g_autoptr(GError) error = NULL;
    cr_assert_not(
        ssd_file_read(file, 100, (uint32_t)left, b.memory + SSD_BLOCK + 100 + shift, b.bounce, &error));
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_FAILED) && strstr(error->message, "became shorter"));
  }
  ssd_file_free(file);
  bench_close(&b);
}

/* --- opening
 * --------------------------------------------------------------------------------------------------------*/

static void expect_refused(const struct bench *b, const struct image *image, const char *says)
{
  g_autoptr(GError) error = NULL;
  struct ssd_file *file = ssd_file_open(b->path, image, &error);
  cr_assert_null(file, "opened, expected: %s", says);
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT), "%s", error->message);
  cr_assert(strstr(error->message, says), "expected \"%s\", found: %s", says, error->message);
}

static void poke(const char *path, off_t at, const char *text)
{
  int fd = open(path, O_WRONLY);
  cr_assert(fd >= 0 && pwrite(fd, text, strlen(text), at) == (ssize_t)strlen(text));
  close(fd);
}

Test(ssd, files_that_are_not_the_model_are_refused)
{
  g_autoptr(Scratch) folder = scratch_new();
  struct bench b;
  bench_open(&b, folder);
  struct image *other = image_generate(catalog_profile(b.catalog, 0), 12);
  expect_refused(&b, other, "layer 0: expected");
  struct stat status;
  cr_assert_eq(stat(b.path, &status), 0);
  cr_assert_eq((uint64_t)status.st_size, ssd_file_bytes(b.image));
  cr_assert_eq(truncate(b.path, status.st_size - 1), 0);
  expect_refused(&b, b.image, "truncated");
  cr_assert_eq(truncate(b.path, 20), 0);
  expect_refused(&b, b.image, "a shorter file");
  cr_assert_eq(g_unlink(b.path), 0);
  expect_refused(&b, b.image, "cannot open");
  cr_assert(ssd_file_write(b.path, b.image, NULL));
  poke(b.path, 0, "x");
  expect_refused(&b, b.image, "found a file that begins otherwise");
  image_free(other);
  bench_close(&b);
}

Test(ssd, what_is_written_is_an_image_for_others_too)
{
  g_autoptr(Scratch) folder = scratch_new();
  struct bench b;
  g_autoptr(GError) error = NULL;
  bench_open(&b, folder);
  struct image *image = image_open(b.path, &error);
  cr_assert(image && image_verify(image, &error), "%s", error ? error->message : "");
  image_free(image);
  g_autofree char *partial = g_strconcat(b.path, ".partial", NULL);
  cr_assert_not(g_file_test(partial, G_FILE_TEST_EXISTS));
  g_autofree char *nowhere = g_build_filename(folder, "none", "x.dmi", NULL);
  cr_assert_not(ssd_file_write(nowhere, b.image, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_FAILED) && strstr(error->message, nowhere));
  bench_close(&b);
}

/* --- the store
 * --------------------------------------------------------------------------------------------------------*/

struct depot {
  struct catalog *catalog;
  struct config config;
  struct images *images;
  struct server_config server[2];
};

static void depot_open(struct depot *d, uint64_t scale)
{
  *d = (struct depot){.catalog = odd_catalog(scale)};
  d->config = (struct config){
      .catalog = d->catalog, .server = d->server, .servers = 2, .servers_at_start = 2, .ssd_copies = 1};
  d->images = images_new(d->catalog, NULL, NULL);
  cr_assert_not_null(d->images);
}

static void depot_close(struct depot *d)
{
  images_free(d->images);
  catalog_free(d->catalog);
}

static struct ssd_store *store_open(struct depot *d, const char *folder, uint32_t server)
{
  g_autoptr(GError) error = NULL;
  struct ssd_store *store = ssd_store_open(folder, &d->config, server, d->images, &error);
  cr_assert_not_null(store, "%s", error ? error->message : "");
  return store;
}

static void expect_text(const struct ssd_store *store, const char *says)
{
  cr_assert(strstr(ssd_store_text(store), says), "expected \"%s\", found: %s", says, ssd_store_text(store));
}

Test(ssd, the_store_writes_what_is_missing_or_wrong)
{
  g_autoptr(Scratch) folder = scratch_new();
  struct depot d;
  depot_open(&d, 1);
  for (uint32_t server = 0; server < 2; server++) { /* one model each */
    struct ssd_store *store = store_open(&d, folder, server);
    cr_assert_not_null(ssd_store_file(store, server));
    cr_assert_null(ssd_store_file(store, 1 - server));
    expect_text(store, "1 models of 0.007 GB, 1 of them written now");
    ssd_store_free(store);
  }
  struct ssd_store *store = store_open(&d, folder, 0);
  expect_text(store, "0 of them written now");
  ssd_store_free(store);
  g_autofree char *path = g_build_filename(folder, "gpu-server-0", "odd-0.dmi", NULL);
  poke(path, 64 + 16, "otherwise"); /* the first layer's checksum */
  store = store_open(&d, folder, 0);
  expect_text(store, "1 of them written now");
  ssd_store_free(store);
  d.config.ssd_copies = 2;
  store = store_open(&d, folder, 0);
  cr_assert_not_null(ssd_store_file(store, 1));
  expect_text(store, "2 models of 0.015 GB, 1 of them written now");
  ssd_store_free(store);
  depot_close(&d);
}

static void expect_no_store(struct depot *d, const char *folder, int code, const char *says)
{
  g_autoptr(GError) error = NULL;
  cr_assert_null(ssd_store_open(folder, &d->config, 0, d->images, &error));
  cr_assert(g_error_matches(error, DM_ERROR, code) && strstr(error->message, says), "expected \"%s\": %s",
            says, error->message);
}

Test(ssd, the_store_refuses_what_cannot_be)
{
  g_autoptr(Scratch) folder = scratch_new();
  struct depot d;
  depot_open(&d, 1);
  g_autofree char *none = g_build_filename(folder, "none", NULL);
  expect_no_store(&d, none, DM_ERROR_INPUT, "expected a folder");
  struct ssd_store *store = store_open(&d, folder, 0);
  expect_no_store(&d, folder, DM_ERROR_INPUT, "another process is using it");
  ssd_store_free(store);
  depot_close(&d);
  depot_open(&d, 10000000); /* 74 TB */
  expect_no_store(&d, folder, DM_ERROR_FAILED, "are to be written");
  depot_close(&d);
  g_autofree char *path = g_build_filename(folder, "gpu-server-0", "odd-0.dmi.partial", NULL);
  cr_assert_not(g_file_test(path, G_FILE_TEST_EXISTS));
}

/* --- the reader
 * -------------------------------------------------------------------------------------------------------*/

#define READS 600

struct tally {
  gint ended[READS], good[READS];
};

static void on_ended(void *context, uint64_t tag, gboolean good)
{
  struct tally *tally = context;
  g_atomic_int_inc(&tally->ended[tag]);
  if (good)
    g_atomic_int_inc(&tally->good[tag]);
}

/* Freed while most are queued or under way: each ends once, and what ended well is there. */
Test(ssd, the_reader_ends_every_read_once)
{
  g_autoptr(Scratch) folder = scratch_new();
  struct bench b;
  struct tally tally = {{0}, {0}};
  bench_open(&b, folder);
  struct ssd_file *file = ssd_file_open(b.path, b.image, NULL);
  uint32_t each = 10000;
  g_autofree uint8_t *raw = NULL, *wants = g_malloc(each);
  uint8_t *base = pages(&raw, (gsize)READS * each);
  struct ssd_reader *reader = ssd_reader_new(base, on_ended, &tally);
  for (uint32_t i = 0; i < READS; i++)
    ssd_reader_read(reader, i % 50 == 49 ? NULL : file, (uint64_t)i * each, (uint64_t)i * each, each, i);
  for (gint64 end = g_get_monotonic_time() + 20 * G_USEC_PER_SEC; ssd_reader_bytes(reader) < 100 * each;)
    cr_assert_lt(g_get_monotonic_time(), end, "nothing is read");
  ssd_reader_free(reader);
  guint good = 0;
  for (uint32_t i = 0; i < READS; i++) {
    cr_assert_eq(tally.ended[i], 1, "read %u ended %d times", i, tally.ended[i]);
    cr_assert(!(i % 50 == 49) || !tally.good[i]);
    good += (guint)tally.good[i];
    if (!tally.good[i])
      continue;
    image_read(b.image, (uint64_t)i * each, each, wants);
    cr_assert_eq(memcmp(base + (gsize)i * each, wants, each), 0, "read %u", i);
  }
  cr_assert_geq(good, 100);
  ssd_file_free(file);
  bench_close(&b);
}
