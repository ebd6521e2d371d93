/* Calibration: the figures of a hardware file as this machine, with this device and transport, really has
 * them.
 *
 * Each part measures one thing through the code that a run uses, as its processes use it, and fits the
 * design's formulas (section 3) to it:
 *
 *   control  a message's way client, controller, GPU server and back, three processes under CURVE: a quarter
 * of it network  loads over the transport from processes of their own, of several sizes and numbers of
 * groups, from one memory server and from two, what arrives being copied on to the GPU: net_stream_us +
 * groups x net_group_us + bytes / rate ssd      a file's reads around the page cache (ssd_gbyte_s), and the
 * room that there is (ssd_gb) device   copies back to back by size: pcie_transfer_us + bytes / rate; and
 * every profile of the GPU: its inference as it really runs (warm_latency_ms), and cut into groups that wait
 * for their copies (group_sync_us)
 *
 * Parts that fork come before those that leave threads behind. */
#ifndef DM_CALIBRATE_H
#define DM_CALIBRATE_H

#include <signal.h>

#include "backend_real/device.h"
#include "backend_real/transport.h"
#include "core/model.h"
#include "harness/progress.h"

enum calibrated_key {
  KEY_NIC,
  KEY_MEMORY_NIC,
  KEY_PCIE,
  KEY_CONTROL,
  KEY_NET_STREAM,
  KEY_NET_GROUP,
  KEY_PCIE_TRANSFER,
  KEY_GROUP_SYNC,
  KEY_LAUNCH,
  KEY_SSD, /* the two only where a folder was given */
  KEY_SSD_RATE,
  CALIBRATED_KEYS
};

struct calibrated {
  double value; /* in the key's own unit */
  char *note;   /* how it was measured, and its spread; NULL: not measured yet */
};

struct calibrated_profile {
  struct profile *profile; /* as the base has it, compute_scale applied; owned */
  /* An inference of the resident model as it really ran: lower quartile (0 = not measured yet), median,
   * upper. */
  double warm_ns, median_ns, high_ns;
  double verify_ns; /* of it, reading and checking the parameters would take alone */
};

struct calibration {
  const struct device_ops *device;
  const struct transport_ops *transport;
  double pace_gbit_s;     /* 0 = none */
  const char *ssd_folder; /* NULL: no SSD is measured */
  char *machine;          /* what the device is: "NVIDIA H200"; NULL: no part opened it */
  char *busy;             /* calibration_busy_text */
  double compute_scale;
  struct calibrated key[CALIBRATED_KEYS];
  GArray *profiles; /* of struct calibrated_profile */
  struct progress *progress;
  volatile sig_atomic_t *interrupted;
};

const char *calibrated_key_name(enum calibrated_key key);
void calibration_set(struct calibration *c, enum calibrated_key key, double value, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
/* How busy the machine is, for people; g_free. */
char *calibration_busy_text(void);
void calibration_clear(struct calibration *c);
/* The largest profile's bytes, in whole MiB, at least `least`. */
uint64_t calibration_bytes(const struct calibration *c, uint64_t least);
/* FALSE + DM_ERROR_INTERRUPTED: Ctrl-C. done: of all the work, 0 .. 1. */
gboolean calibration_goes_on(const struct calibration *c, double done, GError **error);

/* The parts, in their order; done: from and to of the progress bar. */
gboolean calibrate_control(struct calibration *c, GError **error);
gboolean calibrate_network(struct calibration *c, GError **error);
gboolean calibrate_ssd(struct calibration *c, GError **error);
gboolean calibrate_device(struct calibration *c, GError **error);

/* Inside of the device part. */
struct gear;
gboolean calibrate_profiles(struct gear *gear, GError **error);

/* The hardware file's text: all keys of the base (path, for its name and values), the measured ones replaced.
 * NULL + error. g_free. */
char *calibration_hardware_text(const struct calibration *c, const char *base, GError **error);
/* A profile file's text: the base's (path), layers and warm latency as they really run. */
char *calibration_profile_text(const struct calibration *c, const struct calibrated_profile *profile,
                               const char *base, GError **error);

#endif
