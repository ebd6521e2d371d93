/* Host memory; see host_memory.h. */
#include "backend_real/host_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend_real/interrupt.h"
#include "core/error.h"

#define HUGE_PAGE (2ULL << 20)
#define THREADS   8
/* Touched between two looks at signals. */
#define STEP_BYTES (8ULL << 20)

struct touch {
  uint8_t *from;
  uint64_t bytes;
};

static gpointer touch_pages(gpointer data)
{
  const struct touch *touch = data;
  for (uint64_t begin = 0; begin < touch->bytes && !interrupt_waits(); begin += STEP_BYTES)
    for (uint64_t at = begin; at < MIN(begin + STEP_BYTES, touch->bytes); at += 4096)
      touch->from[at] = 0;
  return NULL;
}

/* Faults all pages in, in parallel: zeroing a hundred gigabytes on one core takes half a minute. */
static void touch_all(const struct host_memory *memory)
{
  struct touch part[THREADS];
  GThread *thread[THREADS];
  uint64_t each = (memory->mapped / THREADS + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  for (unsigned i = 0; i < THREADS; i++) {
    uint64_t from = MIN(i * each, memory->mapped);
    part[i] = (struct touch){memory->base + from, MIN(each, memory->mapped - from)};
    thread[i] = g_thread_new("touch", touch_pages, &part[i]);
  }
  for (unsigned i = 0; i < THREADS; i++)
    g_thread_join(thread[i]);
}

static gboolean transparent_huge_pages(void)
{
  g_autofree char *text = NULL;
  return g_file_get_contents("/sys/kernel/mm/transparent_hugepage/enabled", &text, NULL, NULL) &&
         !g_strrstr(text, "[never]");
}

/* At a huge page's boundary, so that transparent ones can begin at once. */
static void *map_aligned(uint64_t bytes)
{
  uint8_t *raw = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED)
    return MAP_FAILED;
  uint8_t *base = (uint8_t *)(((uintptr_t)raw + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
  if (base > raw)
    munmap(raw, (size_t)(base - raw));
  munmap(base + bytes, (size_t)(raw + HUGE_PAGE - base));
  return base;
}

/* The kernel promises memory that it lacks and kills later: look first. */
static gboolean enough(uint64_t bytes, GError **error)
{
  uint64_t has = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  if (bytes <= has)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
              "an arena of %.3f GB: this machine has %.3f GB of memory (host_cache_gb, staging_gb and the "
              "models' size decide)",
              (double)bytes / 1e9, (double)has / 1e9);
  return FALSE;
}

gboolean host_memory_map(struct host_memory *memory, uint64_t bytes, gboolean touch, GError **error)
{
  *memory =
      (struct host_memory){.bytes = bytes, .mapped = (MAX(bytes, 1) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE};
  if (!enough(memory->mapped, error))
    return FALSE;
  void *base =
      mmap(NULL, memory->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  memory->pages = "huge pages";
  if (base == MAP_FAILED) {
    base = map_aligned(memory->mapped);
    gboolean transparent =
        base != MAP_FAILED && transparent_huge_pages() && madvise(base, memory->mapped, MADV_HUGEPAGE) == 0;
    memory->pages = transparent ? "transparent huge pages" : "4 KiB pages";
  }
  if (base == MAP_FAILED) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "an arena of %.3f GB: %s", (double)bytes / 1e9,
                g_strerror(errno));
    return FALSE;
  }
  memory->base = base;
  if (touch)
    touch_all(memory);
  return interrupt_check(error);
}

void host_memory_unmap(struct host_memory *memory)
{
  if (memory->base)
    munmap(memory->base, memory->mapped);
  *memory = (struct host_memory){0};
}
