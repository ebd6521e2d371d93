/* Eight words at a time: the arithmetic of checksum.h on vectors, for loops over every byte of an image.
 *
 * Integers, so the result is the same to the bit whichever instructions the processor has; which it has is
 * asked at run time, and no more than baseline x86-64 is assumed. Vectors go by pointer: by value, their
 * calling convention would depend on the instructions that a file is compiled for. */
#ifndef DM_LANES_H
#define DM_LANES_H

#include <stdint.h>

#define LANES 8

typedef uint64_t lanes __attribute__((vector_size(8 * LANES), aligned(8)));

/* Inlined into functions compiled for other instructions than the file's. */
#define LANES_INLINE static inline __attribute__((always_inline))

/* checksum_mix() of every lane. */
LANES_INLINE void lanes_mix(lanes *x)
{
  *x += 0x9e3779b97f4a7c15;
  *x = (*x ^ *x >> 30) * 0xbf58476d1ce4e5b9;
  *x = (*x ^ *x >> 27) * 0x94d049bb133111eb;
  *x ^= *x >> 31;
}

/* first, first + 1, … */
LANES_INLINE void lanes_count(lanes *x, uint64_t first)
{
  *x = (lanes){0, 1, 2, 3, 4, 5, 6, 7} + first;
}

/* LANES_DISPATCH(result, name, (parameters), (arguments)) defines name(parameters), which calls the inline
 * name_lanes(arguments) compiled for AVX-512, or name_words(arguments), plain C, where the processor cannot
 * multiply vectors of words (with AVX2, which must put them together from half words, it is no faster). gcc's
 * AddressSanitizer lays vectors of 64 bytes at addresses that its own code then faults at (gcc bug 110027),
 * so its builds have plain C alone. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define LANES_DISPATCH(result, name, parameters, arguments)                                                  \
  __attribute__((target("avx512f,avx512dq"))) static result name##_avx512 parameters                         \
  {                                                                                                          \
    return name##_lanes arguments;                                                                           \
  }                                                                                                          \
  static result name parameters                                                                              \
  {                                                                                                          \
    if (__builtin_cpu_supports("avx512dq"))                                                                  \
      return name##_avx512 arguments;                                                                        \
    return name##_words arguments;                                                                           \
  }
#else
#define LANES_DISPATCH(result, name, parameters, arguments)                                                  \
  static result name parameters                                                                              \
  {                                                                                                          \
    return name##_words arguments;                                                                           \
  }
#endif

#endif
