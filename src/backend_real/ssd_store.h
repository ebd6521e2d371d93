/* The SSD tier of one GPU server: a folder on its SSD with a file for each model that lives there
 * (config_ssd_has).
 *
 * The files stand in FOLDER/gpu-server-N/MODEL.dmi, so servers that share a machine have SSDs of their own as
 * far as room goes. What is missing, or is not the run's image, is written when the store opens, after the
 * room has been looked at; what is there already is used again. Files stay when a run is over, those of other
 * runs too: they are the user's to remove. One process at a time has the folder. */
#ifndef DM_SSD_STORE_H
#define DM_SSD_STORE_H

#include "backend_real/images.h"
#include "backend_real/ssd_file.h"
#include "core/config.h"

struct ssd_store;

/* DM_ERROR_INPUT: no such folder, or another process has it. DM_ERROR_FAILED: no room, or a file cannot be
 * written. DM_ERROR_INTERRUPTED: a signal waits. */
struct ssd_store *ssd_store_open(const char *folder, const struct config *config, uint32_t server,
                                 const struct images *images, GError **error);
void ssd_store_free(struct ssd_store *store);
/* NULL: does not live here. */
const struct ssd_file *ssd_store_file(const struct ssd_store *store, uint32_t model);
/* "SSD FOLDER: 4 models of 0.531 GB, 3 of them written now, read by O_DIRECT"; owned by the store. */
const char *ssd_store_text(const struct ssd_store *store);

#endif
