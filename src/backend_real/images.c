/* Images of a run; see images.h. */
#include "backend_real/images.h"

#include "backend_real/checksum.h"
#include "backend_real/interrupt.h"
#include "core/error.h"

struct images {
  const struct catalog *catalog;
  uint32_t models;
  struct image **image;
};

static gboolean check_layers(const struct image *image, const struct profile *profile, const char *path,
                             GError **error)
{
  if (image_layers(image) != profile->layers)
    return input_error(error, path, 0, "expected the %u layers of profile %s, found %u", profile->layers,
                       profile->name, image_layers(image));
  for (uint32_t l = 0; l < profile->layers; l++)
    if (image_layer(image, l)->bytes != profile->layer_bytes[l])
      return input_error(error, path, 0,
                         "layer %u: expected %" G_GUINT64_FORMAT
                         " bytes, as profile %s says, found %" G_GUINT64_FORMAT,
                         l, profile->layer_bytes[l], profile->name, image_layer(image, l)->bytes);
  return TRUE;
}

/* Of a model's image in the folder; g_free. */
static char *image_path(const struct catalog *catalog, uint32_t model, const char *folder)
{
  g_autofree char *name = catalog_model_name(catalog, model);
  return g_strdup_printf("%s/%s.dmi", folder, name);
}

uint32_t images_packed(const struct catalog *catalog, const char *folder)
{
  uint32_t packed = 0;
  for (uint32_t m = 0; m < catalog_models(catalog); m++) {
    g_autofree char *path = image_path(catalog, m, folder);
    packed += g_file_test(path, G_FILE_TEST_EXISTS);
  }
  return packed;
}

static struct image *open_image(const struct images *images, uint32_t model, const char *folder,
                                GError **error)
{
  const struct profile *profile = catalog_profile(images->catalog, model);
  g_autofree char *path = folder ? image_path(images->catalog, model, folder) : NULL;
  if (!path || !g_file_test(path, G_FILE_TEST_EXISTS))
    return image_generate(profile, (uint64_t)g_str_hash(profile->name) << 32 |
                                       catalog_model(images->catalog, model)->variant);
  struct image *image = image_open(path, error);
  if (image && !check_layers(image, profile, path, error))
    g_clear_pointer(&image, image_free);
  return image;
}

struct images *images_new(const struct catalog *catalog, const char *folder, GError **error)
{
  struct images *images = g_new0(struct images, 1);
  images->catalog = catalog;
  images->models = catalog_models(catalog);
  images->image = g_new0(struct image *, images->models);
  for (uint32_t m = 0; m < images->models; m++) {
    images->image[m] = open_image(images, m, folder, error);
    if (!images->image[m]) {
      images_free(images);
      return NULL;
    }
  }
  return images;
}

void images_free(struct images *images)
{
  if (!images)
    return;
  for (uint32_t m = 0; m < images->models; m++)
    image_free(images->image[m]);
  g_free(images->image);
  g_free(images);
}

static void prepare_one(gpointer data, gpointer context)
{
  (void)context;
  const struct image *image = data;
  for (uint32_t l = 0; l < image_layers(image) && !interrupt_waits(); l++)
    image_checksum(image, l, l + 1);
}

gboolean images_prepare(struct images *images, GError **error)
{
  GThreadPool *pool = g_thread_pool_new(prepare_one, NULL, (gint)g_get_num_processors(), FALSE, NULL);
  for (uint32_t m = 0; m < images->models; m++)
    g_thread_pool_push(pool, images->image[m], NULL);
  g_thread_pool_free(pool, FALSE, TRUE);
  return interrupt_check(error);
}

const struct image *images_get(const struct images *images, uint32_t model)
{
  return images->image[model];
}

/* First layer that ends after offset. */
static uint32_t layer_at(const struct image *image, uint64_t offset)
{
  uint32_t low = 0, high = image_layers(image);
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    const struct image_layer *layer = image_layer(image, middle);
    if (layer->offset + layer->bytes <= offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static uint64_t read_checksum(const struct image *image, uint64_t offset, uint64_t bytes)
{
  g_autofree uint8_t *data = g_malloc(bytes);
  image_read(image, offset, bytes, data);
  return checksum(data, offset, bytes);
}

uint64_t images_checksum(const struct images *images, uint32_t model, uint64_t offset, uint64_t bytes)
{
  const struct image *image = images->image[model];
  uint64_t end = offset + bytes, sum = 0;
  for (uint32_t l = layer_at(image, offset); offset < end; l++) {
    const struct image_layer *layer = image_layer(image, l);
    uint64_t stop = MIN(end, layer->offset + layer->bytes);
    if (offset == layer->offset && stop == layer->offset + layer->bytes)
      sum += image_checksum(image, l, l + 1);
    else
      sum += read_checksum(image, offset, stop - offset);
    offset = stop;
  }
  return sum;
}
