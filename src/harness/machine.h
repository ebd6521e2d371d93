/* The machine that this process runs on. */
#ifndef DM_MACHINE_H
#define DM_MACHINE_H

#include <stdint.h>

/* Whole processors that this process may keep busy at once: those of its affinity, at most what a control
 * group of it grants (cpu.max). At least 1. */
uint32_t machine_cores(void);

#endif
