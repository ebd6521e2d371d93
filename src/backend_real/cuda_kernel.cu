/* The executor's kernel; see cuda_kernel.h.
 *
 * It should be bound by memory: 16-byte loads, neighbouring threads beside each other, LOADS of them under way a
 * thread, no more blocks than the GPU holds at once. The checksum's arithmetic comes close to the same bound, so
 * what is the same for all words of a piece (the upper half of their index) is computed once. What remains at a
 * piece's ends, less than two words each, is the first block's, a byte a thread. A piece whose place is not
 * congruent to its image offset modulo 8 is put together from aligned words: right, slower, rare. */
#include "backend_real/cuda_kernel.h"

#include "backend_real/checksum.h"

#define THREADS 256
#define LOADS   4
/* A piece that is counted in 32 bits, with room for the strides past its end. */
#define PIECE_WORDS_MAX (1u << 31)

static __device__ __forceinline__ uint64_t now_ns()
{
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

static __device__ __forceinline__ uint64_t term(uint64_t word, uint64_t index)
{
  return word * (checksum_mix(index) | 1);
}

/* checksum_mix() of indices whose sums with its first constant have one upper half in common. */
struct mixer {
  uint32_t high;
  uint64_t rest; /* what the upper half adds to the first product */

  static __device__ bool covers(uint64_t first, uint64_t last)
  {
    return (first + step) >> 32 == (last + step) >> 32;
  }

  explicit __device__ mixer(uint64_t index)
      : high((uint32_t)((index + step) >> 32)), rest(((uint64_t)(high ^ high >> 30) << 32) * factor)
  {
  }

  __device__ __forceinline__ uint64_t term(uint64_t word, uint32_t index) const
  {
    uint32_t low = index + (uint32_t)step;
    low ^= __funnelshift_r(low, high, 30);
    uint64_t x = low * factor + rest;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return word * ((x ^ x >> 31) | 1);
  }

  static constexpr uint64_t step = 0x9e3779b97f4a7c15, factor = 0xbf58476d1ce4e5b9;
};

/* Image bytes [from, to), fewer than the block has threads; at: address of image byte 0, as far as this piece
 * goes. */
static __device__ uint64_t sum_bytes(uintptr_t at, uint64_t from, uint64_t to)
{
  const uint64_t p = from + threadIdx.x;
  return p < to ? term((uint64_t) * (const uint8_t *)(at + p) << 8 * (p % 8), p / 8) : 0;
}

/* Words [first, last), whose addresses are multiples of 16, an even number of them below 2^32, which one mixer
 * covers. */
static __device__ uint64_t sum_pairs(uintptr_t at, uint64_t first, uint64_t last)
{
  const mixer mix(first);
  const ulonglong2 *pair = (const ulonglong2 *)(at + 8 * first);
  const uint32_t pairs = (uint32_t)((last - first) / 2), stride = gridDim.x * THREADS, low = (uint32_t)first;
  uint64_t sum = 0;
  uint32_t k = blockIdx.x * THREADS + threadIdx.x;
  for (; k + (LOADS - 1) * stride < pairs; k += LOADS * stride) {
    ulonglong2 w[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++)
      w[i] = __ldcs(pair + k + i * stride);
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
      const uint32_t index = low + 2 * (k + i * stride);
      sum += mix.term(w[i].x, index) + mix.term(w[i].y, index + 1);
    }
  }
  for (; k < pairs; k += stride) {
    const ulonglong2 w = __ldcs(pair + k);
    sum += mix.term(w.x, low + 2 * k) + mix.term(w.y, low + 2 * k + 1);
  }
  return sum;
}

/* Words [first, last), wherever they lie. */
static __device__ uint64_t sum_singly(uintptr_t at, uint64_t first, uint64_t last)
{
  const unsigned shift = 8 * (unsigned)(at % 8);
  const uint64_t *word = (const uint64_t *)((at + 8 * first) & ~(uintptr_t)7);
  const uint64_t words = last - first, stride = (uint64_t)gridDim.x * THREADS;
  uint64_t sum = 0;
  for (uint64_t k = (uint64_t)blockIdx.x * THREADS + threadIdx.x; k < words; k += stride)
    sum += term(shift ? word[k] >> shift | word[k + 1] << (64 - shift) : word[k], first + k);
  return sum;
}

/* This thread's share of one piece. */
static __device__ uint64_t sum_piece(const uint8_t *memory, const struct cuda_piece *piece)
{
  const uint64_t begin = piece->offset, end = piece->offset + piece->bytes;
  const uintptr_t at = (uintptr_t)memory + piece->device - begin;
  uint64_t first = (begin + 7) / 8, last = end / 8, sum = 0;
  if (first >= last)
    return blockIdx.x == 0 ? sum_bytes(at, begin, end) : 0;
  if (at % 8 || last - first > PIECE_WORDS_MAX || !mixer::covers(first, last)) {
    sum = sum_singly(at, first, last);
  } else {
    first += (at + 8 * first) % 16 / 8;
    last -= (last - first) % 2;
    sum = sum_pairs(at, first, last);
  }
  if (blockIdx.x == 0)
    sum += sum_bytes(at, begin, 8 * first) + sum_bytes(at, 8 * last, end);
  return sum;
}

/* Over the block; thread 0 has it. */
static __device__ uint64_t sum_block(uint64_t sum)
{
  __shared__ uint64_t warp[THREADS / 32];
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_down_sync(0xffffffff, sum, step);
  if (threadIdx.x % 32 == 0)
    warp[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < THREADS / 32; i++)
      sum += warp[i];
  return sum;
}

/* Lasts until end_ns or a stop; how it ended. Naps are shorter the nearer the end is. */
static __device__ bool wait_until(uint64_t end_ns, const volatile uint32_t *stop)
{
  for (;;) {
    const uint64_t now = now_ns();
    if (now >= end_ns)
      return false;
    if (stop && *stop)
      return true;
    if (end_ns - now > 20000)
      __nanosleep(4000);
    else if (end_ns - now > 2000)
      __nanosleep(400);
  }
}

/* By one thread, after all blocks are through: the sum is complete, and the stream's next kernel has not begun. */
static __device__ void finish(const struct cuda_work *work)
{
  volatile struct cuda_sum *sum = work->sum;
  volatile struct cuda_report *report = work->report;
  const uint64_t found = sum->sum, start_ns = sum->start_ns;
  sum->sum = 0;
  sum->start_ns = 0;
  bool stopped = false;
  if (work->compute_ns > 0)
    stopped = wait_until(start_ns + work->compute_ns, work->stoppable ? &report->stop : nullptr);
  report->duration_ns = now_ns() - start_ns;
  report->status = found != work->checksum ? CUDA_WRONG_BYTES : stopped ? CUDA_STOPPED : CUDA_DONE;
  __threadfence_system();
  report->ended = work->number;
}

static __global__ void __launch_bounds__(THREADS) compute(const __grid_constant__ struct cuda_work work)
{
  if (blockIdx.x == 0 && threadIdx.x == 0 && ((volatile struct cuda_sum *)work.sum)->start_ns == 0) {
    ((volatile struct cuda_sum *)work.sum)->start_ns = now_ns();
    ((volatile struct cuda_report *)work.report)->started = work.number;
  }
  uint64_t sum = 0;
  for (uint32_t i = 0; i < work.pieces; i++)
    sum += sum_piece(work.memory, &work.piece[i]);
  sum = sum_block(sum);
  if (threadIdx.x != 0)
    return;
  if (work.pieces)
    atomicAdd(&work.sum->sum, (unsigned long long)sum);
  __threadfence();
  if (atomicAdd(&work.sum->blocks, 1) != gridDim.x - 1)
    return;
  __threadfence();
  ((volatile struct cuda_sum *)work.sum)->blocks = 0;
  if (!work.more)
    finish(&work);
}

unsigned cuda_kernel_blocks(cudaError_t *error)
{
  int device, processors, blocks;
  if ((*error = cudaGetDevice(&device)) != cudaSuccess ||
      (*error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device)) != cudaSuccess ||
      (*error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, compute, THREADS, 0)) != cudaSuccess)
    return 0;
  return (unsigned)(processors * (blocks > 0 ? blocks : 1));
}

cudaError_t cuda_kernel_launch(const struct cuda_work *work, uint64_t bytes, unsigned blocks_max,
                               cudaStream_t stream)
{
  const uint64_t worth = bytes / (THREADS * LOADS * 16) + 1;
  const unsigned blocks = worth < blocks_max ? (unsigned)worth : blocks_max;
  compute<<<blocks, THREADS, 0, stream>>>(*work);
  return cudaPeekAtLastError();
}
