/* A device opened to be measured; see calibrate_gear.h. */
#include "backend_real/calibrate_gear.h"

#include "core/error.h"

#define LIMIT_NS (30 * NS_PER_S)

static void noted(struct note *note)
{
  struct gear *gear = (struct gear *)(void *)((char *)note - offsetof(struct gear, note));
  gear->told_ns = loop_clock();
  gear->told = TRUE;
  loop_quit(gear->loop);
}

static void ended(void *context, uint64_t tag, enum device_status status, int64_t start_ns, int64_t end_ns)
{
  struct gear *gear = context;
  (void)tag, (void)start_ns, (void)end_ns;
  gear->status = status;
  note_post(gear->loop, &gear->note);
}

static void too_late(void *context, uint64_t tag)
{
  (void)tag;
  loop_quit(((struct gear *)context)->loop);
}

gboolean gear_open(struct gear *gear, struct calibration *calibration, uint64_t bytes, GError **error)
{
  *gear = (struct gear){.calibration = calibration, .bytes = bytes, .note.read = noted, .loop = loop_new()};
  if (!host_memory_map(&gear->memory, bytes, TRUE, error))
    return FALSE;
  struct device_config config = {.gpus = 1,
                                 .gpu_bytes = bytes,
                                 .host = gear->memory.base,
                                 .host_bytes = bytes,
                                 .ended = ended,
                                 .context = gear};
  gear->device = calibration->device->open(&config, error);
  if (gear->device) {
    g_free(calibration->machine);
    calibration->machine = g_strdup(calibration->device->describe(gear->device, 0));
  }
  return gear->device != NULL;
}

void gear_close(struct gear *gear)
{
  if (gear->device)
    gear->calibration->device->close(gear->device);
  loop_read_notes(gear->loop);
  loop_free(gear->loop);
  host_memory_unmap(&gear->memory);
}

uint64_t gear_begin(struct gear *gear)
{
  gear->told = FALSE;
  return 1;
}

gboolean gear_await(struct gear *gear, int64_t *told_ns, GError **error)
{
  uint64_t limit = loop_timer(gear->loop, loop_clock() + LIMIT_NS, too_late, gear, 0);
  loop_run(gear->loop);
  loop_timer_cancel(gear->loop, limit);
  *told_ns = gear->told_ns;
  if (gear->told && gear->status == DEVICE_DONE)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "calibrate: device %s: %s", gear->calibration->device->name,
              !gear->told                          ? "work did not end within 30 s"
              : gear->status == DEVICE_WRONG_BYTES ? "the bytes in GPU memory are not those that were copied"
                                                   : "work failed");
  return FALSE;
}

uint64_t gear_copy(struct gear *gear, uint64_t offset, uint64_t bytes, uint64_t tag)
{
  struct device_copy copy = {
      .pieces = 1, .piece = {{.host = offset, .device = offset, .bytes = bytes}}, .tag = tag};
  return gear->calibration->device->copy(gear->device, &copy);
}
